import type { Worker } from "../api/schema.gen";

const times = (n: number) => (n === 1 ? "" : n === 2 ? " twice" : ` ${n} times`);

/**
 * Return the name of each worker by address. A worker that is restarted keeps its name but not its address: without an addition,
 * the one that was lost and the one that replaced it could not be told apart.
 */
export function workerNames(
  workers: readonly Pick<Worker, "worker" | "name" | "start_us">[],
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const starts = new Map<string, number>();
  for (const w of [...workers].sort((a, b) => a.start_us - b.start_us)) {
    if (found.has(w.worker)) continue;
    const name = w.name || w.worker;
    const before = starts.get(name) ?? 0;
    starts.set(name, before + 1);
    found.set(w.worker, before > 0 ? `${name} (restarted${times(before)})` : name);
  }
  return found;
}

/** Shorter common prefixes are kept, because people use them as part of the name. */
const MIN_SHARED = 8;

/**
 * Return the length of the common prefix up to the last character that is not a letter or digit; 0 if it is short. Worker names that
 * differ only at the end would all be truncated to the same text.
 */
export function sharedLength(names: readonly string[]): number {
  if (new Set(names).size < 2) return 0;
  let length = names[0].length;
  for (const name of names) while (!name.startsWith(names[0].slice(0, length))) length--;
  while (length > 0 && /[\p{L}\p{N}]/u.test(names[0][length - 1])) length--;
  return length < MIN_SHARED || names.some((name) => name.length === length) ? 0 : length;
}
