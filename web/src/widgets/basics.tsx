import type { ComponentChildren } from "preact";
import { copy } from "./clipboard";
import { Icon } from "./icon";

interface PanelProps {
  title?: string;
  note?: ComponentChildren;
  right?: ComponentChildren;
  foot?: ComponentChildren;
  class?: string;
  testid?: string;
  children?: ComponentChildren;
}

/** A bordered section with head, content and foot. */
export function Panel({ title, note, right, foot, children, testid, ...rest }: PanelProps) {
  return (
    <section class={`panel ${rest.class ?? ""}`} aria-label={title} data-testid={testid}>
      {title && (
        <div class="phead">
          <h2>{title}</h2>
          {note && <span class="note">{note}</span>}
          {right && <div class="right">{right}</div>}
        </div>
      )}
      {children}
      {foot && <div class="pfoot">{foot}</div>}
    </section>
  );
}

export function ViewHead({
  title,
  note,
  children,
}: {
  title: string;
  note?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <div class="viewhead">
      <h1>{title}</h1>
      {note && <span class="note">{note}</span>}
      {children && <div class="right">{children}</div>}
    </div>
  );
}

/** The head of a part of a view. */
export function SectionHead({ title, note }: { title: string; note?: ComponentChildren }) {
  return (
    <div class="section">
      <h2>{title}</h2>
      {note && <span class="note">{note}</span>}
    </div>
  );
}

export function Empty({ title, children, snippet }: { title: string; children?: ComponentChildren; snippet?: string }) {
  return (
    <div class="empty">
      <h3>{title}</h3>
      {children && <p>{children}</p>}
      {snippet && (
        <div class="snippet">
          <span style="white-space:pre">{snippet}</span>
          <button type="button" class="btn sm" onClick={() => copy(snippet, "Copied")}>
            Copy
          </button>
        </div>
      )}
    </div>
  );
}

/** Gray bars in place of text that is loading. */
export function Loading({ lines = 3 }: { lines?: number }) {
  return (
    <div style="display:grid;gap:8px;padding:8px 16px 14px" role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: lines }, (_, i) => (
        <div class="skel" key={i} style={{ width: `${88 - ((i * 24) % 50)}%` }} />
      ))}
    </div>
  );
}

export function Failed({ message }: { message: string }) {
  return (
    <div class="inline-err" role="alert" style="margin:12px 16px">
      <Icon name="errors" />
      <span>{message}</span>
    </div>
  );
}

export function Swatch({ colour }: { colour: string }) {
  return <i class="sw" style={{ background: `var(${colour})` }} />;
}
