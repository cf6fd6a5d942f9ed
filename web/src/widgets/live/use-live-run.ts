import { useEffect, useMemo, useReducer, useState } from "preact/hooks";
import { fetchIncrement } from "../../api/increments";
import { ApiError } from "../../api/server";
import type { PrefixOrder } from "../../model/model";
import { LiveModel } from "./live-model";

/** How long the server may wait for something new, in seconds. */
const WAIT_S = 20;
/** Time between two requests, so that a busy cluster does not keep the page busy. */
const PAUSE_MS = 20;
/** How often the picture moves between increments. */
const MOVE_MS = 500;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;

export interface LiveFeed {
  live: LiveModel;
  /** Why nothing arrives at the moment; empty while all is well. */
  problem: string;
}

/**
 * Follow a run, from a moment if there is one: ask for increments one after the other while the page is visible. After a failure, continue
 * where it stopped.
 */
export function useLiveRun(
  urlOf: (cursor: string, wait: number) => string,
  order: PrefixOrder,
  deps: readonly unknown[],
  startUs = 0,
): LiveFeed {
  const [, rerender] = useReducer((n: number) => n + 1, 0);
  const [problem, setProblem] = useState("");
  // `order` is only the start: the run itself numbers what is new.
  const live = useMemo(() => new LiveModel(order, () => rerender(0), startUs), deps);
  useEffect(() => {
    const stop = new AbortController();
    setProblem("");
    void follow(live, urlOf, stop.signal, setProblem);
    // Between increments time goes on.
    const timer = setInterval(() => {
      if (live.model && live.run.isLive && !live.isPaused && !document.hidden) live.advance(performance.now());
    }, MOVE_MS);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [live]);
  return { live, problem };
}

async function follow(
  live: LiveModel,
  urlOf: (cursor: string, wait: number) => string,
  signal: AbortSignal,
  setProblem: (problem: string) => void,
): Promise<void> {
  const { run } = live;
  let delay = FIRST_RETRY_MS;
  while (!signal.aborted && run.isLive) {
    await visible(signal);
    if (signal.aborted) return;
    try {
      const increment = await fetchIncrement(urlOf(run.cursor, run.cursor ? WAIT_S : 0), signal);
      if (signal.aborted) return;
      const began = performance.now();
      run.apply(increment, began);
      // For benchmarks. Measures stay in memory until they are cleared.
      performance.clearMeasures("daskscope-live-increment");
      performance.measure("daskscope-live-increment", { start: began, end: performance.now() });
      setProblem("");
      live.advance(performance.now());
      delay = FIRST_RETRY_MS;
      await sleep(PAUSE_MS, signal);
    } catch (error) {
      if (signal.aborted) return;
      const status = error instanceof ApiError ? error.status : 0;
      const message = error instanceof Error ? error.message : String(error);
      if (status === 401 || status === 403 || status === 404) {
        setProblem(message);
        return;
      }
      setProblem(`${message} Trying again.`);
      await sleep(delay, signal);
      delay = Math.min(2 * delay, LAST_RETRY_MS);
    }
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return until(signal, (done) => {
    const timer = setTimeout(done, ms);
    return () => clearTimeout(timer);
  });
}

/** Wait until the page is visible: a page in a hidden tab asks for nothing. */
function visible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return until(signal, (done) => {
    const check = () => document.hidden || done();
    document.addEventListener("visibilitychange", check);
    return () => document.removeEventListener("visibilitychange", check);
  });
}

/** Wait until `start` calls its argument, or until the signal. Nothing stays registered: a page may be open for days. */
function until(signal: AbortSignal, start: (done: () => void) => () => void): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      signal.removeEventListener("abort", done);
      clear();
      resolve();
    };
    const clear = start(done);
    signal.addEventListener("abort", done);
  });
}
