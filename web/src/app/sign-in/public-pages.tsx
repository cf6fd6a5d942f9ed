import { MIN_PASSWORD } from "../../api/limits.gen";
import { keepPageSecret } from "../../api/page-secret";
import { Api } from "../../api/server";
import type { Opened } from "../../api/server.gen";
import type { Router } from "../../model/page/router";
import { Failed, Panel } from "../../widgets/basics";
import { Brand } from "../../widgets/icon";
import { Field } from "../parts/field";
import { safeRedirect } from "../shell/redirects";
import { ApproveDevice } from "./approve-device";
import { SignInForm } from "./sign-in-form";

/** Pages that need no sign-in. Their names are reserved: no account can use them. */
export function publicPage(router: Router): preact.ComponentChild {
  if (router.parts.length !== 1) return null;
  if (router.parts[0] === "login") return <SignIn router={router} />;
  if (router.parts[0] === "setup") return <Setup router={router} />;
  if (router.parts[0] === "device") return <ApproveDevice router={router} />;
  return null;
}

function SignIn({ router }: { router: Router }) {
  const link = linkSecret(location.hash);
  return link ? <SignInByLink router={router} link={link} /> : <SignInWithPassword router={router} />;
}

function SignInWithPassword({ router }: { router: Router }) {
  const send = async ({ user, password }: Record<string, string>) => {
    const opened = await new Api(router.root, "").send<Opened>("POST", "session", { user, password });
    keepPageSecret(opened.page_secret);
    location.assign(safeRedirect(router.params.next ?? "", router.href([]), location.origin));
  };
  return (
    <SignInForm
      router={router}
      title="Sign in"
      send={send}
      buttons={
        <button type="submit" class="btn primary">
          Sign in
        </button>
      }
    >
      <Field label="User name" name="user" autocomplete="username" autoFocus />
      <Field label="Password" name="password" secret autocomplete="current-password" />
      <small class="faint">
        No password, or forgot it? Ask an owner of your account or an administrator of this server for a link.
      </small>
    </SignInForm>
  );
}

const LINK = /^#(sign-in|password):(.+)$/;

interface LinkSecret {
  setsPassword: boolean;
  secret: string;
}

/** Return the secret of a sign-in link; null if the URL has none. It is behind the #, which browsers do not send. */
export function linkSecret(hash: string): LinkSecret | null {
  const found = LINK.exec(hash);
  return found ? { setsPassword: found[1] === "password", secret: found[2] ?? "" } : null;
}

/** Sign in with a link that works once. Nothing happens before the button: opening a link must not use it up. */
function SignInByLink({ router, link }: { router: Router; link: LinkSecret }) {
  const send = async ({ password }: Record<string, string>) => {
    const body = { secret: link.secret, ...(link.setsPassword ? { password } : {}) };
    const opened = await new Api(router.root, "").send<Opened>("POST", "session/link", body);
    keepPageSecret(opened.page_secret);
    location.assign(router.href([]));
  };
  return (
    <SignInForm
      router={router}
      title={link.setsPassword ? "Choose a new password" : "Sign in"}
      text={link.setsPassword ? "Your password was reset. This link works once." : "This link signs you in once."}
      send={send}
      buttons={
        <button type="submit" class="btn primary">
          {link.setsPassword ? "Save and sign in" : "Sign in"}
        </button>
      }
    >
      {link.setsPassword && (
        <Field
          label="New password"
          name="password"
          secret
          autocomplete="new-password"
          minLength={MIN_PASSWORD}
          hint={`At least ${MIN_PASSWORD} characters`}
          autoFocus
        />
      )}
    </SignInForm>
  );
}

/** Create the first user and account, with the secret from the link that the server printed. */
function Setup({ router }: { router: Router }) {
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
        minLength={MIN_PASSWORD}
        hint={`At least ${MIN_PASSWORD} characters`}
      />
      <Field
        label="Team name"
        name="team"
        hint="Lowercase letters, digits and hyphens. Part of every URL, as in /team/runs"
      />
    </SignInForm>
  );
}
