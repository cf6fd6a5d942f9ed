/** The hovered time, shared by all charts with a time axis. Not part of the page state: a change must not re-render the page. */

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
