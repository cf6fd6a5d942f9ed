import type { Category, Group } from "../api/schema.gen";

const RULES: readonly [RegExp, Category][] = [
  // "executor" is Dask's name for the time between requesting a thread and getting it.
  [/noncpu|wait|other|executor/, "noncpu"],
  [/^cpu|-cpu$|compute/, "cpu"],
  [/serial|compress|pickle/, "serialize"],
  [/disk|memory-read|memory-write|spill|evict/, "disk"],
  [/network|transfer|gather|get-data|send/, "transfer"],
  [/fail|cancel|discard|lost|seceded/, "failed"],
  [/idle/, "idle"],
];

/** Names of the activities in running text. */
export const ACTIVITY_NAMES: Readonly<Record<Category, string>> = {
  cpu: "CPU",
  noncpu: "waiting",
  serialize: "serialize",
  disk: "disk",
  transfer: "transfer",
  failed: "lost or failed",
  idle: "idle",
};

/** Capitalize the first letter. */
export const capital = (name: string) => name.slice(0, 1).toUpperCase() + name.slice(1);

/** Return the category of an activity label; null for user-defined labels. */
export function categoryOf(activity: string): Category | null {
  return RULES.find(([words]) => words.test(activity.toLowerCase()))?.[1] ?? null;
}

/** Return the time of all activities of a task group. */
export function groupTime({ durations_us }: Pick<Group, "durations_us">): number {
  return Object.values(durations_us).reduce((a, b) => a + b, 0);
}
