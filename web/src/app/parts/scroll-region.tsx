import type { ComponentChildren } from "preact";

/** A region that scrolls sideways if its content is wider than the window. */
export function ScrollRegion({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
