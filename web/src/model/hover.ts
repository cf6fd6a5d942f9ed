/** The moment under the pointer, shared by every chart with a time axis. Not in the URL, and not worth a redraw of the page. */

let now: number | null = null;
const listeners = new Set<(t: number | null) => void>();

export function setHover(t: number | null): void {
  if (t === now) return;
  now = t;
  for (const listener of listeners) listener(t);
}

export function onHover(listener: (t: number | null) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
