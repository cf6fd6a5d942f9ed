import { keepPageSecret } from "../api/page-secret";
import { Api } from "../api/server";
import type { Opened } from "../api/server.gen";
import type { Router } from "../model/router";
import { Field } from "./field";
import { SignInForm } from "./sign-in-form";

const LINK = /^#(sign-in|password):(.+)$/;

export interface LinkSecret {
  setsPassword: boolean;
  secret: string;
}

/** Return the secret of a sign-in link; null if the URL has none. It is behind the #, which browsers do not send. */
export function linkSecret(hash: string): LinkSecret | null {
  const found = LINK.exec(hash);
  return found ? { setsPassword: found[1] === "password", secret: found[2] ?? "" } : null;
}

/** Sign in with a link that works once. Nothing happens before the button: opening a link must not use it up. */
export function SignInByLink({ router, link }: { router: Router; link: LinkSecret }) {
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
          minLength={10}
          hint="At least 10 characters"
          autoFocus
        />
      )}
    </SignInForm>
  );
}
