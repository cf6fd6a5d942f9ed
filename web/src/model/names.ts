/** Worker names that differ only at the end would all be truncated to the same text. */

/** Shorter common prefixes are kept, because people use them as part of the name. */
const MIN_SHARED = 8;

/** Return the length of the common prefix up to the last character that is not a letter or digit; 0 if it is short. */
export function sharedLength(names: readonly string[]): number {
  if (new Set(names).size < 2) return 0;
  let length = names[0].length;
  for (const name of names) while (!name.startsWith(names[0].slice(0, length))) length--;
  while (length > 0 && /[\p{L}\p{N}]/u.test(names[0][length - 1])) length--;
  return length < MIN_SHARED || names.some((name) => name.length === length) ? 0 : length;
}
