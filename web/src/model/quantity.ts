/**
 * Names of quantities, for the attribute `data-quantity`. A quantity has one value, wherever it stands on the pages of a run. Names are paths: the parts
 * `thread-time/by-activity/cpu`, … add up to `thread-time`. Shares (`…-share/by-…`) add up to 100 %.
 */

const escaped = (name: string) => name.replaceAll("/", "∕");

/** Name a part of a whole, which is divided by something: a prefix, an activity. */
export function part(whole: string, by: string, name: string): string {
  return `${whole}/by-${by}/${escaped(name)}`;
}

/** Name a quantity of one thing: a worker, a line of code. */
export function quantityOf(kind: string, ...names: readonly (string | number)[]): string {
  return [kind, ...names.map((name) => escaped(String(name)))].join(":");
}
