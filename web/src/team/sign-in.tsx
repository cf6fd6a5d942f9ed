import { keepPageSecret } from "../api/page-secret";
import { Api } from "../api/server";
import type { Opened } from "../api/server.gen";
import type { Router } from "../model/router";
import { Field } from "./field";
import { safeRedirect } from "./redirects";
import { linkSecret, SignInByLink } from "./sign-in-by-link";
import { SignInForm } from "./sign-in-form";

export function SignIn({ router }: { router: Router }) {
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
