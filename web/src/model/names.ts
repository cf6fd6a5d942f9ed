/** Names that differ only at their ends would all be cut to the same text. */

/** Prefixes shorter than this are part of how people call a thing. */
const LEAST = 8;

/** How much of the beginning all names share, up to the last sign that is neither letter nor digit; 0 where that is little. */
export function sharedLength(names: readonly string[]): number {
  if (new Set(names).size < 2) return 0;
  let length = names[0].length;
  for (const name of names) while (!name.startsWith(names[0].slice(0, length))) length--;
  while (length > 0 && /[\p{L}\p{N}]/u.test(names[0][length - 1])) length--;
  return length < LEAST || names.some((name) => name.length === length) ? 0 : length;
}
