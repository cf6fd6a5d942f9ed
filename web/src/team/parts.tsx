import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ApiError } from "../api/server";
import type { Cluster, ComputationState, ErrorState } from "../api/server.gen";
import { ago, duration, moment } from "../model/format";
import { Loading } from "../widgets/basics";
import { Icon, Pill, type PillState } from "../widgets/icon";
import { type Resource, useNow, useTeam } from "./context";

/** A link inside of the app: no page is loaded for it. */
export function Link({ to, params, hash = "", children, ...rest }: { to: readonly string[]; params?: Record<string, string | undefined>; hash?: string; children: ComponentChildren; class?: string; title?: string; "aria-current"?: "page"; testid?: string }) {
  const { router } = useTeam();
  const href = router.href(to, params) + (hash && `#${hash}`);
  const { testid, ...attributes } = rest;
  return (
    <a
      href={href} data-testid={testid} {...attributes}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
        event.preventDefault();
        router.go(href);
      }}
    >
      {children}
    </a>
  );
}

const us = (iso: string) => Date.parse(iso) * 1000;

/** "2 h ago", with the moment itself on hover. */
export function Ago({ at, never = "not recorded", now: justNow = "now" }: { at: string | null; never?: string; now?: string }) {
  const now = useNow();
  if (!at) return <span class="faint">{never}</span>;
  return (
    <time dateTime={at} title={moment(us(at))}>
      {ago(now * 1000 - us(at)).replace(/^now$/, justNow)}
    </time>
  );
}

/** The moment itself, where there is room for it. */
export function minute(at: string | null): string {
  return at ? `${at.slice(0, 16).replace("T", " ")} UTC` : "";
}

export function seconds(s: number): string {
  return duration(s * 1e6);
}

/** Whether it is there, as far as anybody knows. */
export function isLive(c: Pick<Cluster, "state">): boolean {
  return c.state === "running" || c.state === "idle";
}

/** A state in colour, glyph and word; an idle cluster says for how long. */
export function ClusterPill({ cluster: c }: { cluster: Pick<Cluster, "state" | "idle_seconds" | "reason"> }) {
  if (c.state === "idle") return <Pill state={c.idle_seconds > 600 ? "warn" : "idle"}>{c.idle_seconds > 0 ? `Idle ${seconds(c.idle_seconds)}` : "Idle"}</Pill>;
  const words = { running: "Running", finished: "Finished", lost: "Lost" } as const;
  return <Pill state={c.state}>{words[c.state]}</Pill>;
}

export function ComputationPill({ state }: { state: ComputationState }) {
  const pills: Record<ComputationState, [PillState, string]> = { running: ["running", "Running"], done: ["finished", "Finished"], erred: ["erred", "Erred"], cancelled: ["idle", "Cancelled"], lost: ["lost", "Lost"] };
  const [pill, word] = pills[state] ?? ["idle", state];
  return <Pill state={pill}>{word}</Pill>;
}

export function ErrorPill({ state }: { state: ErrorState }) {
  const pills: Record<ErrorState, [PillState, string]> = { open: ["erred", "Open"], resolved: ["finished", "Resolved"], ignored: ["idle", "Ignored"], regressed: ["warn", "Regressed"] };
  const [pill, word] = pills[state];
  return <Pill state={pill}>{word}</Pill>;
}

/** What is loading, what failed with one thing to do, or the content; old content stays while new is asked for. */
export function Loaded<T>({ from, lines = 4, children }: { from: Resource<T>; lines?: number; children: (value: T) => ComponentChildren }) {
  return (
    <>
      {from.error && <Trouble error={from.error} at={from.value ? from.at : 0} retry={from.reload} />}
      {from.value ? children(from.value) : !from.error && <Loading lines={lines} />}
    </>
  );
}

export function Trouble({ error, at, retry }: { error: ApiError; at: number; retry: () => void }) {
  return (
    <div class="inline-err" role="alert" style="margin:12px 16px">
      <Icon name="errors" />
      <span>
        {error.message}
        {at > 0 && ` Showing data from ${new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false })}.`}
      </span>
      <button type="button" class="btn sm" onClick={retry}>
        Retry
      </button>
    </div>
  );
}

/** A line over some numbers; the last one is where it stands now. */
export function Spark({ values, label, most = Math.max(...values, 1e-12), width = 84, height = 18, tone = "var(--text-3)" }: { values: readonly number[]; label: string; most?: number; width?: number; height?: number; tone?: string }) {
  if (values.length < 2) return null;
  const points = values.map((v, i) => `${((i / (values.length - 1)) * width).toFixed(1)},${(height - 1 - (Math.max(v, 0) / most) * (height - 3)).toFixed(1)}`).join(" ");
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <polygon points={`0,${height} ${points} ${width},${height}`} fill="var(--bar-soft)" />
      <polyline points={points} fill="none" stroke={tone} stroke-width="1.4" />
    </svg>
  );
}

/** Code, with the line that matters marked. */
export function Source({ code, hot }: { code: string; hot: number }) {
  return <pre class="src" tabIndex={0}>{code.split("\n").map((line, i) => <span key={i} class={i === hot ? "hot" : ""}><i>{i === hot ? "▸" : ""}</i> {line}</span>)}</pre>;
}

/** A table that may be wider than the window. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}

export function Person({ name }: { name: string }) {
  const letters = name.split(/[ ._-]+/).map((part) => part[0] ?? "").join("").slice(0, 2).toUpperCase();
  return (
    <>
      <span class="avatar" aria-hidden="true">{letters}</span>
      {name}
    </>
  );
}

/** A button whose action takes a while and may fail. */
export function Act({ children, run, class: kind = "", disabled = false, testid }: { children: ComponentChildren; run: () => Promise<unknown>; class?: string; disabled?: boolean; testid?: string }) {
  const [busy, set] = useState(false);
  const [error, setError] = useState("");
  return (
    <>
      <button
        type="button" class={`btn ${kind}`} disabled={busy || disabled} data-testid={testid}
        onClick={() => {
          set(true);
          setError("");
          run().catch((e: unknown) => setError(e instanceof Error ? e.message : String(e))).finally(() => set(false));
        }}
      >
        {children}
      </button>
      {error && <span class="bad" role="alert">{error}</span>}
    </>
  );
}
