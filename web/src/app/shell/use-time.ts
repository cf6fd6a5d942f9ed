import { useEffect, useReducer, useState } from "preact/hooks";

/** Return the text once it has not changed for 200 ms. */
export function useDebouncedText(text: string): string {
  const [settled, set] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => set(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** Return how often a text about an age changes, or should: all in milliseconds. */
export function renewedEvery(age: number): number {
  return age < 60_000 ? 1000 : 30_000;
}

/** Return the current time for a text like "6 s ago" or "2 min ago", and render again when the text changes: every second, later every 30. */
export function useNow(since: number): number {
  const now = Date.now();
  const every = renewedEvery(now - since);
  const [, rerender] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => rerender(0), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
