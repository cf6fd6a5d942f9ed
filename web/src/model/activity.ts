import type { Category } from "../api/schema.gen";

const RULES: readonly [RegExp, Category][] = [
  // "executor" is Dask's name for the time between asking for a thread and having it.
  [/noncpu|wait|other|executor/, "noncpu"],
  [/thread-cpu|^cpu|compute/, "cpu"],
  [/serial|compress|pickle/, "serialize"],
  [/disk|memory-read|memory-write|spill|evict/, "disk"],
  [/network|transfer|gather|get-data|send/, "transfer"],
  [/fail|cancel|discard|lost|seceded/, "failed"],
  [/idle/, "idle"],
];

/** What the parts of thread time are called in running text. */
export const ACTIVITY_NAMES: Readonly<Record<Category, string>> = {
  cpu: "CPU", noncpu: "waiting in task", serialize: "serialize", disk: "disk", transfer: "transfer", failed: "lost or failed", idle: "idle",
};

/** The same as a title. */
export const capital = (name: string) => name.slice(0, 1).toUpperCase() + name.slice(1);

/** The colour of an activity label; labels that users add are gray. */
export function categoryOf(activity: string): Category | null {
  return RULES.find(([words]) => words.test(activity.toLowerCase()))?.[1] ?? null;
}
