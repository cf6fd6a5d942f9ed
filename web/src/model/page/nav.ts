import { CATEGORIES, type Category } from "../../api/schema.gen";
import { type Axis, type Selection, select, wholeRun } from "../time";

export const VIEWS = [
  "overview",
  "stream",
  "profile",
  "fine",
  "memory",
  "bandwidth",
  "workers",
  "groups",
  "errors",
  "coffea",
] as const;
export type View = (typeof VIEWS)[number];
/** Views that the activity filter applies to. */
export const FILTERED_BY_ACTIVITY: readonly View[] = ["overview", "stream", "fine"];
export type Params = Readonly<Record<string, string>>;

export interface State {
  view: View;
  selection: Selection;
  /** Activity filter, null for all. Like the selection it applies to all views. */
  activity: Category | null;
  /** Filters, settings and the open item of the view. */
  params: Params;
}

export function parseHash(hash: string, axis: Axis, first: View = "overview"): State {
  const [path, ...rest] = hash.replace(/^#\/?/, "").split("?");
  const query = rest.join("?");
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
  const { whole, isNow } = state.selection;
  if (!whole && !isNow) query.set("t", `${seconds(state.selection.t0)}-${seconds(state.selection.t1)}`);
  if (state.activity) query.set("activity", state.activity);
  for (const [key, value] of Object.entries(state.params)) query.set(key, value);
  const text = query.toString();
  return `#${state.view}${text ? `?${text}` : ""}`;
}

/** The state of the page, stored in the URL. Opening a view or choosing an activity adds a history entry, other changes replace it. */
export class Nav {
  state: State;
  private readonly listeners = new Set<() => void>();
  private timer = 0;
  private written = Number.NEGATIVE_INFINITY;

  /** `inUrl` is false for charts inside another page: their selection is not in the URL. */
  constructor(
    public axis: Axis,
    private readonly first: View,
    readonly inUrl = true,
  ) {
    this.state = parseHash(inUrl ? location.hash : "", axis, first);
    if (inUrl) addEventListener("popstate", this.onPop);
  }

  /** Stop listening: another page takes over the URL. */
  close(): void {
    clearTimeout(this.timer);
    removeEventListener("popstate", this.onPop);
  }

  get params(): Params {
    return this.state.params;
  }

  private readonly onPop = () => {
    this.state = parseHash(location.hash, this.axis, this.first);
    this.notify();
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

  /** Filter by an activity. The same activity again, or null, clears the filter. */
  filterActivity(activity: Category | null): void {
    this.push({ ...this.state, activity: activity === this.state.activity ? null : activity });
  }

  private push(state: State): void {
    this.write();
    this.state = state;
    if (this.inUrl) history.pushState(null, "", toHash(state));
    // Write the next change at once, so that a quick Back does not lose it.
    this.written = Number.NEGATIVE_INFINITY;
    this.notify();
  }

  /** Set parameters; undefined removes one. */
  set(params: Readonly<Record<string, string | undefined>>): void {
    const next = { ...this.state.params };
    for (const [key, value] of Object.entries(params)) {
      if (value === undefined) delete next[key];
      else next[key] = value;
    }
    this.state = { ...this.state, params: next };
    this.scheduleWrite();
  }

  /** Return the URL of the current state. */
  link(): string {
    this.write();
    return location.href;
  }

  select(selection: Selection): void {
    this.state = { ...this.state, selection };
    this.scheduleWrite();
  }

  /** Move the selection with a run that goes on. The URL does not change. */
  follow(selection: Selection): void {
    this.state = { ...this.state, selection };
    this.notify();
  }

  /** Write at most 4 times a second: browsers allow about 200 changes in 30 s, and a drag changes the state with every move. */
  private scheduleWrite(): void {
    clearTimeout(this.timer);
    if (performance.now() - this.written > 250) this.write();
    else this.timer = window.setTimeout(() => this.write(), 250);
    this.notify();
  }

  private write(): void {
    clearTimeout(this.timer);
    if (!this.inUrl) return;
    if (toHash(this.state) === (location.hash || `#${this.first}`)) return;
    this.written = performance.now();
    history.replaceState(null, "", toHash(this.state));
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}
