import { keepPageSecret } from "../api/page-secret";
import { Api } from "../api/server";
import type { Opened } from "../api/server.gen";
import type { Router } from "../model/router";
import { Failed, Panel } from "../widgets/basics";
import { Brand } from "../widgets/icon";
import { Field } from "./field";
import { SignInForm } from "./sign-in-form";

/** Create the first user and account, with the secret from the link that the server printed. */
export function Setup({ router }: { router: Router }) {
  const secret = location.hash.slice(1);
  const send = async ({ user, password, team }: Record<string, string>) => {
    const name = team ?? "";
    const opened = await new Api(router.root, "").send<Opened>("POST", "setup", { secret, user, password, team: name });
    keepPageSecret(opened.page_secret);
    location.assign(router.href([name]));
  };
  if (!secret)
    return (
      <main class="signin">
        <Brand href={router.href([])} />
        <Panel>
          <Failed message="This link has no secret. Open the complete link that the server printed at its first start." />
        </Panel>
      </main>
    );
  return (
    <SignInForm
      router={router}
      title="Set up"
      text="Create the first user, who becomes the administrator, and the first account."
      send={send}
      buttons={
        <button type="submit" class="btn primary">
          Set up
        </button>
      }
    >
      <Field
        label="User name"
        name="user"
        autocomplete="username"
        hint="Lowercase letters, digits and hyphens"
        autoFocus
      />
      <Field
        label="Password"
        name="password"
        secret
        autocomplete="new-password"
        minLength={10}
        hint="At least 10 characters"
      />
      <Field
        label="Team name"
        name="team"
        hint="Lowercase letters, digits and hyphens. Part of every URL, as in /team/clusters"
      />
    </SignInForm>
  );
}
