import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Router } from "../../model/page/router";
import { Brand } from "../../widgets/icon";
import { fieldsOf } from "../parts/field";

interface SignInFormProps {
  router: Router;
  title: string;
  text?: ComponentChildren;
  send: (fields: Record<string, string>) => Promise<void>;
  buttons: ComponentChildren;
  children?: ComponentChildren;
}

/** A centered form with fields, buttons and an error message. */
export function SignInForm({ router, title, text, send, buttons, children }: SignInFormProps) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = `${title} · daskscope`;
    document.documentElement.dataset.page = "sign-in";
  }, [title]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    send(fieldsOf(event))
      .catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)))
      .finally(() => setBusy(false));
  };
  return (
    <main class="signin" data-testid="page-sign-in">
      <Brand href={router.href([])} />
      <form class="panel" onSubmit={submit} aria-busy={busy}>
        <h1>{title}</h1>
        {text && <p class="muted">{text}</p>}
        {children}
        {problem && (
          <p class="inline-err" role="alert">
            {problem}
          </p>
        )}
        <fieldset class="buttons" disabled={busy}>
          {buttons}
        </fieldset>
      </form>
    </main>
  );
}
