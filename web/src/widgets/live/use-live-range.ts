import { useEffect, useReducer, useState } from "preact/hooks";
import type { LiveRun } from "../../model/live/live-run";

/** How often the picture moves while it follows, in ms. */
const MOVE_MS = 500;

/** Windows that a page can follow, in seconds; 0 for the whole run. */
export const WINDOWS = { "30s": 30, "2min": 120, "10min": 600, all: 0 } as const;
export type WindowName = keyof typeof WINDOWS;

/** The shown time in microseconds since the origin. */
export interface LiveRange {
  t0: number;
  t1: number;
}

export interface LiveRangeState extends LiveRange {
  /** Whether the reader selected a time, which stays until they go back. */
  isPaused: boolean;
  /** Executions that ended since the reader paused. */
  missed: number;
  pause: (t0: number, t1: number) => void;
  resume: () => void;
}

/** Return the shown time: the last seconds, which move, or the time that the reader selected. */
export function useLiveRange(run: LiveRun, version: number, window: WindowName): LiveRangeState {
  const [paused, setPaused] = useState<(LiveRange & { tasks: number }) | null>(null);
  const [, move] = useReducer((n: number) => n + 1, 0);
  const moves = paused === null && version > 0 && run.isLive;
  useEffect(() => {
    if (!moves) return;
    const timer = setInterval(() => {
      if (!document.hidden) move(0);
    }, MOVE_MS);
    return () => clearInterval(timer);
  }, [moves]);
  useEffect(() => setPaused(null), [run]);
  const now = Math.max(1e6, run.now(performance.now()));
  const length = WINDOWS[window] * 1e6;
  return {
    t0: paused?.t0 ?? (length ? Math.max(0, now - length) : 0),
    t1: paused?.t1 ?? now,
    isPaused: paused !== null,
    missed: paused ? run.tasks - paused.tasks : 0,
    pause: (a, b) => setPaused({ t0: Math.min(a, b), t1: Math.max(a, b), tasks: run.tasks }),
    resume: () => setPaused(null),
  };
}
