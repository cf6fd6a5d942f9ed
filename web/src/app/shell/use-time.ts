import { useEffect, useState } from "preact/hooks";

/** Return the text once it has not changed for 200 ms. */
export function useDebouncedText(text: string): string {
  const [settled, set] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => set(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** Return the current time, updated every 30 seconds, for texts like "2 min ago". */
export function useNow(every = 30_000): number {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
