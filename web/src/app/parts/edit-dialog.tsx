import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { fieldsOf } from "./field";

interface EditDialogProps {
  title: string;
  /** Content of the button that opens the dialog. */
  button: ComponentChildren;
  label: string;
  /** Text of the button that saves. */
  submit?: string;
  save: (fields: Record<string, string>) => Promise<unknown>;
  children: ComponentChildren;
  testid: string;
}

/** A button that opens a form. The form stays open and shows the error if saving fails. */
export function EditDialog({ title, button, label, submit: word = "Save", save, children, testid }: EditDialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const [open, set] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal();
  }, [open]);
  const close = () => {
    setProblem("");
    set(false);
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    save(fieldsOf(event)).then(
      () => ref.current?.close(),
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <>
      <button type="button" class="btn sm" aria-label={label} onClick={() => set(true)} data-testid={testid}>
        {button}
      </button>
      {open && (
        <dialog class="edit" ref={ref} onClose={close} aria-label={title}>
          <form onSubmit={submit}>
            <h2>{title}</h2>
            {children}
            {problem && (
              <p class="inline-err" role="alert">
                {problem}
              </p>
            )}
            <div class="buttons">
              <button type="submit" class="btn primary" data-testid={`${testid}-save`}>
                {word}
              </button>
              <button type="button" class="btn" onClick={() => ref.current?.close()}>
                Cancel
              </button>
            </div>
          </form>
        </dialog>
      )}
    </>
  );
}

/** Parse comma-separated tags. */
export function parseTags(text: string): string[] {
  return [
    ...new Set(
      text
        .split(",")
        .map((tag) => tag.trim())
        .filter(Boolean),
    ),
  ];
}
