import type { ComponentChildren } from "preact";
import { Icon } from "./icon";
import { toast } from "./toast";

interface PanelProps {
  title?: string;
  note?: ComponentChildren;
  right?: ComponentChildren;
  foot?: ComponentChildren;
  class?: string;
  testid?: string;
  children?: ComponentChildren;
}

/** One border; head, content, foot. */
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

export function ViewHead({ title, note, children }: { title: string; note?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class="viewhead">
      <h1>{title}</h1>
      {note && <span class="note">{note}</span>}
      {children && <div class="right">{children}</div>}
    </div>
  );
}

interface SegProps<T extends string> {
  label: string;
  options: readonly (readonly [T, string])[];
  value: T;
  onChange: (value: T) => void;
  testid?: string;
}

/** A choice of few, all visible. */
export function Seg<T extends string>({ label, options, value, onChange, testid }: SegProps<T>) {
  return (
    <div class="seg" role="group" aria-label={label} data-testid={testid}>
      {options.map(([key, text]) => (
        <button type="button" key={key} aria-pressed={key === value} onClick={() => onChange(key)}>
          {text}
        </button>
      ))}
    </div>
  );
}

interface PickProps {
  label: string;
  options: readonly (readonly [string, string])[];
  value: string;
  all?: string;
  onChange: (value: string) => void;
  testid?: string;
}

/** A choice of many. */
export function Pick({ label, options, value, all, onChange, testid }: PickProps) {
  return (
    <label class="lab">
      {label}
      <select class="sel" value={value} data-testid={testid} onChange={(e) => onChange(e.currentTarget.value)}>
        {all && <option value="">{all}</option>}
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text.length > 60 ? `${text.slice(0, 59)}…` : text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Search({ label, value, onInput, testid }: { label: string; value: string; onInput: (text: string) => void; testid: string }) {
  return <input class="txt" type="search" placeholder={label} aria-label={label} value={value} data-testid={testid} onInput={(e) => onInput(e.currentTarget.value)} />;
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

/** Gray bars where text will be. */
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

/** Puts a text on the clipboard, also where only the old way works (file://). */
export function copy(text: string, done: string): void {
  const old = () => {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.cssText = "position:fixed;opacity:0";
    document.body.append(area);
    area.select();
    const ok = document.execCommand("copy");
    area.remove();
    toast(ok ? done : "The browser did not allow copying");
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => toast(done), old);
  else old();
}

export function download(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
