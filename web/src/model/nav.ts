import { CATEGORIES, type Category } from "../api/schema.gen";
import { type Axis, select, type Selection, wholeRun } from "./time";

export const VIEWS = [
  "overview", "stream", "profile", "fine", "memory", "bandwidth", "workers", "errors", "code", "groups", "events", "path", "tables",
] as const;
export type View = (typeof VIEWS)[number];
/** Views whose numbers follow the chosen activity. */
export const FOLLOWING: readonly View[] = ["overview", "stream", "fine"];
export type Params = Readonly<Record<string, string>>;

export interface State {
  view: View;
  selection: Selection;
  /** The part of thread time that is looked at alone, null for all; like the selected time it stays from view to view. */
  activity: Category | null;
  /** Filters, switches and the selected item of the view. */
  params: Params;
}

export function parseHash(hash: string, axis: Axis, first: View = "overview"): State {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const view = VIEWS.find((v) => v === path) ?? first;
  const params: Record<string, string> = Object.fromEntries(new URLSearchParams(query));
  const range = /^(-?[\d.]+)-([\d.]+)$/.exec(params.t ?? "");
  const activity = CATEGORIES.find((c) => c === params.activity) ?? null;
  delete params.t;
  delete params.activity;
  const selection = range ? select(axis, Number(range[1]) * 1e6, Number(range[2]) * 1e6) : wholeRun(axis);
  return { view, selection, activity, params };
}

const seconds = (us: number) => String(Math.round(us) / 1e6);

export function toHash(state: State): string {
  const query = new URLSearchParams();
  if (!state.selection.whole) query.set("t", `${seconds(state.selection.t0)}-${seconds(state.selection.t1)}`);
  if (state.activity) query.set("activity", state.activity);
  for (const [key, value] of Object.entries(state.params)) query.set(key, value);
  const text = query.toString();
  return `#${state.view}${text ? `?${text}` : ""}`;
}

/** The state of the page; it lives in the URL. Opening a view or choosing an activity adds an entry to the history, everything else replaces it. */
export class Nav {
  state: State;
  private readonly listeners = new Set<() => void>();
  private timer = 0;
  private written = Number.NEGATIVE_INFINITY;

  constructor(
    readonly axis: Axis,
    private readonly first: View,
  ) {
    this.state = parseHash(location.hash, axis, first);
    addEventListener("popstate", this.onPop);
  }

  /** Ends listening: another page takes over the address. */
  close(): void {
    clearTimeout(this.timer);
    removeEventListener("popstate", this.onPop);
  }

  get params(): Params {
    return this.state.params;
  }

  private readonly onPop = () => {
    this.state = parseHash(location.hash, this.axis, this.first);
    this.tell();
  };

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  href(view: View, params: Params = {}, selection = this.state.selection): string {
    return toHash({ view, params, selection, activity: this.state.activity });
  }

  go(view: View, params: Params = {}, selection = this.state.selection): void {
    this.push({ ...this.state, view, params, selection });
    scrollTo(0, 0);
  }

  /** Looks at one activity alone; the same one again, or null, takes that back. */
  pick(activity: Category | null): void {
    this.push({ ...this.state, activity: activity === this.state.activity ? null : activity });
  }

  private push(state: State): void {
    this.write();
    this.state = state;
    history.pushState(null, "", toHash(state));
    // The first change to the new entry is written at once: a quick Back must not lose it.
    this.written = Number.NEGATIVE_INFINITY;
    this.tell();
  }

  /** Changes filters and switches; what is undefined is taken away. */
  set(params: Readonly<Record<string, string | undefined>>): void {
    const next = { ...this.state.params };
    for (const [key, value] of Object.entries(params)) {
      if (value === undefined) delete next[key];
      else next[key] = value;
    }
    this.state = { ...this.state, params: next };
    this.later();
  }

  /** The address of what is shown now. */
  link(): string {
    this.write();
    return location.href;
  }

  select(selection: Selection): void {
    this.state = { ...this.state, selection };
    this.later();
  }

  /** At once, then at most 4 times a second: browsers allow about 200 changes in 30 s, and a drag makes one with every move. */
  private later(): void {
    clearTimeout(this.timer);
    if (performance.now() - this.written > 250) this.write();
    else this.timer = window.setTimeout(() => this.write(), 250);
    this.tell();
  }

  private write(): void {
    clearTimeout(this.timer);
    if (toHash(this.state) === (location.hash || `#${this.first}`)) return;
    this.written = performance.now();
    history.replaceState(null, "", toHash(this.state));
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}
