import { CATEGORIES, type Category, INTERNAL_METRICS } from "../api/schema.gen";
import { ACTIVITY_NAMES, capital, categoryOf } from "./activity";
import type { CubeData } from "./cube";
import type { Selection } from "./time";

export interface MetricSum {
  context: string;
  prefix: string;
  activity: string;
  value: number;
}

export interface MetricFilter {
  unit: string;
  /** Only these prefixes and activities; empty for all. Unknown ones match nothing. */
  prefixes?: readonly string[];
  activities?: readonly string[];
  span?: string;
  category?: Category | null;
  /** Include Dask's internal metrics. */
  internal?: boolean;
}

/** Return whether a metric measures Dask itself, or repeats another one. */
export function isInternal(metric: Omit<MetricSum, "value">): boolean {
  return INTERNAL_METRICS.some((labels) =>
    (["context", "prefix", "activity"] as const).every(
      (name) => labels[name] === undefined || labels[name] === metric[name],
    ),
  );
}

/** Return a function that tests whether a row has an internal metric. */
function internalRows({ keys, codes }: CubeData): (row: number) => boolean {
  return (row) =>
    isInternal({
      context: keys.context[codes.context[row]],
      prefix: keys.prefix[codes.prefix[row]],
      activity: keys.activity[codes.activity[row]],
    });
}

/** Sum the metrics of one unit in the selected time. */
export function sumMetrics(cube: CubeData, selection: Selection, filter: MetricFilter): MetricSum[] {
  const { keys, codes, bin, measures } = cube;
  const { prefixes = [], activities = [], span = "", category = null, internal = false } = filter;
  const u = keys.unit.indexOf(filter.unit);
  const s = keys.span.indexOf(span);
  const wantedActivity = keys.activity.map(
    (label) => (!category || categoryOf(label) === category) && (activities.length === 0 || activities.includes(label)),
  );
  const wantedPrefix = keys.prefix.map((name) => prefixes.length === 0 || prefixes.includes(name));
  const found = new Map<number, number>();
  const np = keys.prefix.length;
  const na = keys.activity.length;
  for (let row = 0; row < cube.rows; row++) {
    if (codes.unit[row] !== u || bin[row] < selection.b0 || bin[row] >= selection.b1) continue;
    if (!wantedActivity[codes.activity[row]] || !wantedPrefix[codes.prefix[row]]) continue;
    if (span !== "" && codes.span[row] !== s) continue;
    const key = (codes.context[row] * np + codes.prefix[row]) * na + codes.activity[row];
    found.set(key, (found.get(key) ?? 0) + measures.value[row]);
  }
  return [...found]
    .map(([key, value]) => ({
      activity: keys.activity[key % na],
      prefix: keys.prefix[Math.floor(key / na) % np],
      context: keys.context[Math.floor(key / na / np)],
      value,
    }))
    .filter((sum) => internal || !isInternal(sum));
}

/** Return the units of the cube that have metrics to show. */
export function unitsOf(cube: CubeData, internal: boolean): string[] {
  const used = new Set<number>();
  const hidden = internalRows(cube);
  for (let row = 0; row < cube.rows; row++)
    if (!used.has(cube.codes.unit[row]) && (internal || !hidden(row))) used.add(cube.codes.unit[row]);
  return cube.keys.unit.filter((_, i) => used.has(i));
}

export interface HitRate {
  share: number;
  hits: number;
  reads: number;
  unit: "count" | "bytes";
}

/** Return how many inputs of tasks were in memory instead of on disk, by count or else by bytes; null if not recorded. */
export function hitRate(cube: CubeData, selection: Selection, filter: Omit<MetricFilter, "unit">): HitRate | null {
  for (const unit of ["count", "bytes"] as const) {
    const sums = sumMetrics(cube, selection, { ...filter, activities: [], category: null, unit });
    const of = (activity: string) =>
      sums.reduce((sum, m) => sum + (m.context === "execute" && m.activity === activity ? m.value : 0), 0);
    const hits = of("memory-read");
    const reads = hits + of("disk-read");
    if (reads > 0) return { share: hits / reads, hits, reads, unit };
  }
  return null;
}

/** Plain names of Dask's activities. Activities of users keep their names. */
const PLAIN = new Map(
  Object.entries({
    "thread-cpu": "CPU",
    "thread-noncpu": "Waiting in task",
    network: "Send and receive",
    executor: "Waiting for a thread",
    other: "Other",
    deserialize: "Deserialize",
    serialize: "Serialize",
    compress: "Compress",
    decompress: "Decompress",
    "disk-read": "Read from disk",
    "disk-write": "Write to disk",
    "memory-read": "Read from memory",
    failed: "Failed",
    cancelled: "Cancelled",
    seceded: "Seceded",
    offload: "Waiting for a helper thread",
  }),
);

export function activityName(activity: string, context = ""): string {
  if (activity === "network" && context) return context === "get-data" ? "Send" : "Receive";
  return PLAIN.get(activity) ?? activity;
}

const CONTEXTS = new Map(
  Object.entries({
    execute: "executing",
    "gather-dep": "fetching inputs",
    "get-data": "sending results",
    "memory-monitor": "spilling",
    p2p: "P2P shuffle",
  }),
);

export function contextName(context: string): string {
  return CONTEXTS.get(context) ?? context;
}

/** Colour and legend text of an activity: a class of a category, or a colour. */
export interface ActivityStyle {
  name: string;
  class?: string;
  colour?: string;
}

export function activityStyle(activity: string): ActivityStyle {
  // Reading from memory is not disk time: both next to each other show how much was spilled.
  if (activity === "memory-read") return { name: "Memory read", colour: "--mem-managed" };
  const category = categoryOf(activity);
  // No gray: that is serialization.
  if (!category) return { name: "Other", colour: "--cat-2" };
  return { name: capital(ACTIVITY_NAMES[category]), class: `a-${category}` };
}

/** Names of the styles in display order: categories, memory read, other. */
const STYLE_ORDER = [...CATEGORIES.map((c) => capital(ACTIVITY_NAMES[c])), "Memory read", "Other"];

/** The metrics that have one style, the largest first. */
export interface StyleSum {
  style: ActivityStyle;
  value: number;
  members: MetricSum[];
}

/** Add up metrics by style, in display order: segments of one colour would not show where one ends. */
export function sumByStyle(rows: readonly MetricSum[]): StyleSum[] {
  const found = Map.groupBy(rows, ({ activity }) => activityStyle(activity).name);
  return STYLE_ORDER.flatMap((name) => {
    const members = [...(found.get(name) ?? [])].sort((a, b) => b.value - a.value);
    if (members.length === 0) return [];
    const value = members.reduce((sum, m) => sum + m.value, 0);
    return [{ style: activityStyle(members[0].activity), value, members }];
  });
}

/** Return the styles of the activities in display order. */
export const legendOf = (rows: readonly MetricSum[]): ActivityStyle[] => sumByStyle(rows).map(({ style }) => style);

/** Convert a list to a parameter of the URL and back. */
export const joinList = (items: readonly string[]): string => items.map(encodeURIComponent).join(",");

export function splitList(text: string): string[] {
  return text
    .split(",")
    .filter(Boolean)
    .map((item) => {
      try {
        return decodeURIComponent(item);
      } catch {
        return item;
      }
    });
}
