import { describe, expect, test } from "vitest";
import type { Error as Failure, Group, Report, Share, Worker } from "../../src/api/schema.gen";
import { clock } from "../../src/model/text/format";
import {
  failuresAnswer,
  graphAnswer,
  memoryAnswer,
  networkAnswer,
  noPathText,
  profileAnswer,
  timeAnswer,
  timelineAnswer,
  type ViewAnswer,
  workersAnswer,
} from "../../src/viewer/answers";

const MIB = 2 ** 20;

function text({ fact, context }: ViewAnswer): string {
  const pieces = [...fact, " ", ...context];
  return pieces
    .map((p) => (typeof p === "string" ? p : "code" in p ? p.code : p.value))
    .join("")
    .trim();
}

const up = () => 1;

const worker = (name: string, more: Partial<Worker> = {}): Worker => ({
  worker: `tcp://${name}`,
  name,
  host: "",
  threads: 2,
  memory_limit: 700 * MIB,
  start_us: 0,
  stop_us: 0,
  verdict: "",
  evidence: "",
  tasks: 0,
  busy_us: 0,
  busy_share: 0,
  peak_memory: 0,
  peak_us: 0,
  spilled: 0,
  processing: [],
  processing_count: 0,
  lost_count: 0,
  recomputed_us: 0,
  ...more,
});
const nameOf = (address: string) => `worker ${address.replace("tcp://", "")}`;

describe("the timeline names the prefix with most time", () => {
  test("and the failed tasks", () => {
    const times = [
      { name: "load", us: 59 },
      { name: "sum", us: 41 },
    ];
    expect(text(timelineAnswer(times, { errors: 12, killed: 0 }))).toBe(
      "load takes 59 % of the task time. 12 tasks failed.",
    );
    expect(text(timelineAnswer(times.slice(1), { errors: 0, killed: 0 }))).toBe(
      "sum takes 100 % of the task time. No task failed.",
    );
  });
  test("if a task ran", () =>
    expect(text(timelineAnswer([{ name: "a", us: 0 }], { errors: 0, killed: 0 }))).toBe("No task ran."));
  test("also if it has no name", () =>
    expect(text(timelineAnswer([{ name: "", us: 1 }], { errors: 1, killed: 2 }))).toBe(
      "unnamed takes 100 % of the task time. 1 task failed, 2 task runs ended with a lost worker.",
    ));
});

describe("the profile names the hottest line", () => {
  const lines = [{ name: "_matmul", file: "/x/numpy/routines.py", line: 406, whose: "lib" as const, self: 68 }];
  const short = () => "routines.py";
  test("and its place", () => {
    expect(text(profileAnswer(lines, 100, short, 0))).toBe("68 % of compute time is in _matmul, routines.py:406.");
  });
  test("and says if many samples were missed", () => {
    expect(text(profileAnswer(lines, 100, short, 0.35))).toContain("35 % of samples were missed");
  });
  test("if there are samples", () => expect(text(profileAnswer([], 0, short, 0))).toBe("No samples of tasks."));
});

describe("thread time", () => {
  const split = (...us: [Share["category"], number][]): Share[] =>
    us.map(([category, us]) => ({
      category,
      label: category,
      us,
      reasons: category === "idle" ? [{ reason: "too few tasks", label: "Too few tasks", us }] : [],
    }));
  test("is computing and idle", () => {
    const found = timeAnswer(split(["cpu", 46], ["noncpu", 5], ["transfer", 15], ["idle", 34]));
    expect(text(found)).toBe(
      "46 % of thread time is computing, 5 % waiting in tasks, 15 % on transfers, 34 % idle. Most idle time: too few tasks.",
    );
  });
  test("is rounded as in the bar, whose parts add up to 100", () => {
    // 33.4 %, but the bar shows 34, 33 and 33 %.
    const thirds = timeAnswer(split(["cpu", 334], ["noncpu", 333], ["idle", 333]));
    expect(text(thirds)).toContain("34 % of thread time is computing, 33 % waiting in tasks, 33 % idle");
    expect(text(timeAnswer(split(["cpu", 3], ["noncpu", 1], ["idle", 996])))).toContain("0.3 % of thread time");
  });
  test("may be missing", () => expect(text(timeAnswer(split(["cpu", 0])))).toBe("No thread time recorded."));
});

describe("memory", () => {
  test("has the worker with the highest peak", () => {
    const workers = [worker("0", { peak_memory: 361 * MIB }), worker("1", { peak_memory: 300 * MIB })];
    expect(text(memoryAnswer(workers, 0, nameOf, clock))).toBe("Peak 361 of 700 MiB on worker 0. Nothing spilled.");
    expect(text(memoryAnswer(workers, 5 * MIB, nameOf, clock))).toContain("Up to 5 MiB spilled at once.");
  });
  test("says by when the peak was reached", () => {
    const workers = [worker("0", { peak_memory: 361 * MIB, peak_us: 12_000_000 })];
    expect(text(memoryAnswer(workers, 0, nameOf, clock))).toContain("on worker 0, reached by 0:12.0.");
  });
  test("may have no limit", () => {
    const workers = [worker("0", { peak_memory: MIB, memory_limit: 0 })];
    expect(text(memoryAnswer(workers, 0, nameOf, clock))).toContain("Peak 1 MiB on worker 0.");
  });
  test("may be missing", () => expect(text(memoryAnswer([worker("0")], 0, nameOf, clock))).toBe("No memory recorded."));
});

describe("the network", () => {
  const isWorker = (address: string) => !address.includes("client");
  const pair = (source: string, destination: string, nbytes: number, us = 1e6) => ({
    source,
    destination,
    nbytes,
    us,
    count: 1,
    compressed: 0,
  });
  test("has the worker that fetched most", () => {
    const pairs = [pair("a", "b", 30 * MIB), pair("c", "b", 50 * MIB), pair("b", "a", 20 * MIB)];
    expect(text(networkAnswer(pairs, 0, nameOf, isWorker))).toBe(
      "Worker b fetched most: 80 MiB of 100 MiB. The median pair moved 30 MiB/s.",
    );
  });
  test("leaves small pairs out of the median", () => {
    const pairs = [pair("a", "b", 30 * MIB), ...["c", "d", "e"].map((w) => pair(w, "client", 1024))];
    expect(text(networkAnswer(pairs, 0, nameOf, isWorker))).toContain("The median pair moved 30 MiB/s.");
  });
  test("may have no transfers between workers", () => {
    const pairs = ["a", "b"].map((w) => pair(w, "client", 640));
    expect(text(networkAnswer(pairs, 0, nameOf, isWorker))).toBe(
      "No transfers between workers. Clients fetched 1.25 KiB.",
    );
  });
  test("has one unit per number", () => {
    const pairs = [pair("a", "b", 30 * MIB, 0), pair("b", "a", 29 * 1024 * MIB, 0)];
    expect(text(networkAnswer(pairs, MIB, nameOf, isWorker))).toBe(
      "Worker a fetched most: 29 GiB of 29 GiB. P2P shuffles moved 1 MiB.",
    );
  });
  test("may be unused", () => expect(text(networkAnswer([], 0, nameOf, isWorker))).toBe("No task fetched data."));
});

describe("workers", () => {
  test("are counted, with the busiest and the least busy", () => {
    const workers = [
      worker("0", { busy_share: 0.34 }),
      worker("1", { busy_share: 0.91 }),
      worker("2", { busy_share: 0.5, verdict: "vanished" }),
    ];
    expect(text(workersAnswer(workers, nameOf, up))).toBe(
      "3 workers in total, 1 lost. Busiest while up: worker 1 with 91 %, least busy: worker 0 with 34 %.",
    );
  });
  test("leave out one that joined at the end", () => {
    const late = worker("0", { busy_share: 0, start_us: 9 });
    expect(text(workersAnswer([worker("1", { busy_share: 0.5 }), late], nameOf, (w) => 10 - w.start_us))).toBe(
      "2 workers in total, 0 lost. Worker 1 was up longest, and busy 50 % of that time.",
    );
  });
  test("say among which one is the busiest, because one that was lost early may have been busier", () => {
    const lost = worker("2", { busy_share: 0.87, stop_us: 2, verdict: "vanished" });
    const workers = [worker("0", { busy_share: 0.71 }), worker("1", { busy_share: 0.6 }), lost];
    expect(text(workersAnswer(workers, nameOf, (w) => w.stop_us || 10))).toBe(
      "3 workers in total, 1 lost. Busiest of the 2 that were up longest: worker 0 with 71 %, least busy: worker 1 with 60 %.",
    );
  });
  test("may be one or none", () => {
    expect(text(workersAnswer([worker("0", { busy_share: 0.5 })], nameOf, up))).toBe(
      "1 worker in total, 0 lost. Busy 50 % of the time while up.",
    );
    expect(text(workersAnswer([], nameOf, up))).toBe("No worker joined.");
  });
});

describe("the graph", () => {
  const group = (prefix: string, us: number, errors = 0): Group => ({
    group: `${prefix}-1`,
    prefix,
    computation: "",
    span: "",
    start_us: 0,
    stop_us: 0,
    tasks: 1,
    nbytes: 0,
    errors,
    durations_us: us ? { compute: us } : {},
    dominant: "cpu",
    dependencies: [],
  });
  test("has the group with most time", () => {
    expect(text(graphAnswer([group("load", 1), group("sum", 3)]))).toBe(
      "sum takes 75 % of the time of 2 task groups. No task failed.",
    );
    expect(text(graphAnswer([group("load", 1, 2)]))).toContain("Most failures: load, 2 tasks.");
  });
  test("may have no times or no groups", () => {
    expect(text(graphAnswer([group("load", 0)]))).toBe("1 task group without recorded times. No task failed.");
    expect(text(graphAnswer([]))).toBe("No task groups recorded.");
  });
});

describe("failures", () => {
  const failure = (type: string, count: number): Failure => ({
    fingerprint: type,
    type,
    message: "",
    traceback: "",
    count,
    retried: 0,
    first_us: 0,
    last_us: 0,
    prefixes: ["load"],
    workers: [],
    keys: [],
  });
  const totals = (errors: number, retries: number) => ({ errors, retries }) as Report["totals"];
  test("are counted, with the most frequent", () => {
    expect(text(failuresAnswer([failure("KeyError", 9), failure("OSError", 3)], totals(12, 0), [], nameOf))).toBe(
      "12 tasks failed: most often KeyError in load, 9 times. 1 other error group.",
    );
  });
  test("may all be retried", () => {
    expect(text(failuresAnswer([failure("KeyError", 9)], totals(0, 9), [], nameOf))).toBe(
      "9 task runs failed and were retried: most often KeyError in load, 9 times.",
    );
  });
  test("are not what lost workers took with them", () => {
    const lost = [worker("0"), worker("2", { verdict: "vanished" })];
    const cost = (killed: number, recomputed: number) => ({ ...totals(0, 0), killed, recomputed });
    expect(text(failuresAnswer([], cost(2, 8), lost, nameOf))).toBe(
      "No task failed. 2 task runs were killed with worker 2. 8 results were recomputed.",
    );
    const two = [...lost, worker("3", { verdict: "memory kill" })];
    expect(text(failuresAnswer([failure("KeyError", 9)], { ...cost(0, 0), errors: 9 }, two, nameOf))).toContain(
      "No task run was killed with 2 lost workers. No result was recomputed.",
    );
  });
  test("may be absent", () => expect(text(failuresAnswer([], totals(0, 0), [], nameOf))).toBe("No task failed."));
});

test("without a critical path, a run in which no dependent task ran is told from one without recorded dependencies", () => {
  const group = (stop_us: number, ...dependencies: number[]) => ({ stop_us, dependencies });
  expect(noPathText([group(5), group(9, 0)])).toBe("Dependencies between tasks were not recorded.");
  expect(noPathText([group(5), group(0, 0)])).toBe("No task that depends on another one ran.");
  expect(noPathText([group(5), group(9, 7)])).toBe("No task that depends on another one ran.");
});
