import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

/** A button for an asynchronous action. It is disabled while the action runs and shows its error. */
export function ActionButton({
  children,
  run,
  class: kind = "",
  disabled = false,
  testid,
}: {
  children: ComponentChildren;
  run: () => Promise<unknown>;
  class?: string;
  disabled?: boolean;
  testid?: string;
}) {
  const [busy, set] = useState(false);
  const [error, setError] = useState("");
  return (
    <>
      <button
        type="button"
        class={`btn ${kind}`}
        disabled={busy || disabled}
        data-testid={testid}
        onClick={() => {
          set(true);
          setError("");
          run()
            .catch((e: unknown) => setError(e instanceof Error ? e.message : String(e)))
            .finally(() => set(false));
        }}
      >
        {children}
      </button>
      {error && (
        <span class="bad" role="alert">
          {error}
        </span>
      )}
    </>
  );
}
