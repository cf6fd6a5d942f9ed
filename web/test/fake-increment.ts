import type { Column, Increment } from "../src/api/increments";
import type { IncrementHeader, IncrementWorker } from "../src/api/server.gen";

export const SECOND = 1e6;

export interface Bar {
  start: number;
  length: number;
  prefix?: string;
  category?: number;
  worker?: string;
}

/** Return the row of a worker with two threads that joined at the origin. */
export const worker = (name: string, more: Partial<IncrementWorker> = {}): IncrementWorker => ({
  worker: name,
  name: "",
  threads: 2,
  memory_limit: 100,
  start_us: 0,
  stop_us: 0,
  verdict: "",
  ...more,
});

/** Return an increment with bars, and with their thread time in the second of their start. */
export function increment(
  bars: Bar[],
  more: Partial<IncrementHeader> = {},
  samples: [number, string, number][] = [],
): Increment {
  const prefixes = [...new Set(bars.map((bar) => bar.prefix ?? "inc"))];
  const workers = [...new Set(bars.map((bar) => bar.worker ?? "a"))];
  const sampled = [...new Set(samples.map(([, name]) => name))];
  const numbers = (values: number[]): Column => Float64Array.from(values);
  const zeros = numbers(samples.map(() => 0));
  return {
    header: {
      cursor: "1.1.1",
      is_first: false,
      origin_us: 0,
      now_us: 10 * SECOND,
      known_until_us: more.now_us ?? 10 * SECOND,
      is_live: true,
      window: 600,
      first_second: 400,
      names: {
        prefixes,
        lanes: workers.map((name) => [name, 1]),
        workers: sampled,
        frames: [],
      },
      workers: [],
      errors: [],
      keys: bars.map((_, i) => `key-${i}`),
      left_out: 0,
      history: null,
      columns: [],
      ...more,
    },
    parts: {
      bars: {
        start: numbers(bars.map((bar) => bar.start)),
        length: numbers(bars.map((bar) => bar.length)),
        lane: numbers(bars.map((bar) => workers.indexOf(bar.worker ?? "a"))),
        prefix: numbers(bars.map((bar) => prefixes.indexOf(bar.prefix ?? "inc"))),
        category: numbers(bars.map((bar) => bar.category ?? 0)),
      },
      busy: {
        second: numbers(bars.map((bar) => Math.floor(bar.start / SECOND))),
        prefix: numbers(bars.map((bar) => prefixes.indexOf(bar.prefix ?? "inc"))),
        category: numbers(bars.map((bar) => bar.category ?? 0)),
        us: numbers(bars.map((bar) => bar.length)),
        count: numbers(bars.map(() => 1)),
      },
      samples: {
        second: numbers(samples.map(([second]) => second)),
        worker: numbers(samples.map(([, name]) => sampled.indexOf(name))),
        memory: numbers(samples.map(([, , memory]) => memory)),
        managed: zeros,
        spilled: zeros,
        paused: zeros,
      },
      stacks: { second: numbers([]), node: numbers([]), count: numbers([]) },
      nodes: { parent: numbers([]), frame: numbers([]) },
    },
  };
}
