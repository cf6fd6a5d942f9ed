import type { Category } from "../api/schema.gen";

const RULES: readonly [RegExp, Category][] = [
  [/noncpu|wait|other/, "noncpu"],
  [/thread-cpu|^cpu|compute|executor/, "cpu"],
  [/serial|compress|pickle/, "serialize"],
  [/disk|memory-read|memory-write|spill|evict/, "disk"],
  [/network|transfer|gather|get-data|send/, "transfer"],
  [/fail|cancel|discard|lost|seceded/, "failed"],
  [/idle/, "idle"],
];

/** The colour of an activity label; labels that users add are gray. */
export function categoryOf(activity: string): Category | null {
  return RULES.find(([words]) => words.test(activity.toLowerCase()))?.[1] ?? null;
}
