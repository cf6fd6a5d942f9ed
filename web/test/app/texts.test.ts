import { describe, expect, test } from "vitest";
import type { ClusterProgress, Computation, ComputationProgress, OneCluster } from "../../src/api/server.gen";
import { parseTags } from "../../src/app/parts/edit-dialog";
import { progressHeadline } from "../../src/app/run/cluster-progress";
import {
  callText,
  computeShare,
  costNote,
  errorsNote,
  failures,
  tasksNote,
  totalsOf,
} from "../../src/app/run/cluster-text";
import { safeRedirect } from "../../src/app/shell/redirects";

describe("the failures of a cluster", () => {
  const of = (n_errors: number, n_exceptions: number) => failures({ n_errors, n_exceptions });

  test.each([
    [of(0, 0), "no task failed"],
    [of(1, 2), "1 task failed, 1 retried"],
    [of(0, 3), "no task failed, 3 retried"],
    [of(2, 2), "2 tasks failed"],
  ])("they read %j", (text, expected) => expect(text).toBe(expected));
});

describe("the headline of a running cluster", () => {
  const of = (total: number, ...items: Partial<ComputationProgress>[]) =>
    progressHeadline({ total, items } as ClusterProgress);

  test("it is the progress of the only computation", () => {
    expect(of(1, { summary: "12 of 50 tasks, about 3 s left", stuck: "" })).toBe(
      "Running: 12 of 50 tasks, about 3 s left.",
    );
    expect(of(1, { summary: "12 of 50 tasks", stuck: "no worker fits" })).toBe("Stuck: no worker fits.");
  });
  test("it says that all tasks are done before the recorder closes the computation", () => {
    const done = { summary: "all 180 tasks done", total: 180, done: 180, running: 0, waiting: 0, failed: 0, stuck: "" };
    expect(of(1, done)).toBe("All 180 tasks done.");
  });
  test("a computation has its own, however many run", () => {
    const progress = {
      total: 2,
      items: [{ id: "a" }, { id: "b", summary: "3 of 4 tasks", stuck: "" }],
    } as ClusterProgress;
    expect(progressHeadline(progress, "b")).toBe("Running: 3 of 4 tasks.");
    expect(progressHeadline(progress, "c")).toBe("");
  });
  test("it is empty without one, with several, and before the answer", () => {
    expect([of(0), of(2, {}, {}), of(2, {}), progressHeadline(null)]).toEqual(["", "", "", ""]);
  });
});

describe("the tasks of a running cluster", () => {
  const busy = { state: "running", tasks_processing: 9, tasks_queued: 95, tasks_unrunnable: 0 } as OneCluster;
  const progress = (total: number, ...items: Partial<ComputationProgress>[]) => ({ total, items }) as ClusterProgress;

  test("they are counted by its progress, not by what the scheduler assigned", () => {
    expect(tasksNote(busy, progress(1, { running: 6, waiting: 58 }))).toBe("6 running, 58 waiting");
    const two = progress(2, { running: 4, waiting: 0 }, { running: 2, waiting: 58 });
    expect(tasksNote(busy, two)).toBe("6 running, 58 waiting");
    expect(tasksNote(busy, progress(1, { running: 0, waiting: 0 }))).toBe("0 running, 0 waiting");
  });

  test("they are not counted if not all computations are listed", () => {
    expect(tasksNote(busy, progress(2, { running: 6, waiting: 58 }))).toBe("so far");
    expect(tasksNote(busy, null)).toBe("so far");
    expect(tasksNote({ ...busy, tasks_processing: 0, tasks_queued: 0 }, progress(0))).toBe("none running");
  });

  test("they may fit no worker", () => {
    const stuck = { ...busy, tasks_processing: 0, tasks_queued: 0, tasks_unrunnable: 3 };
    expect(tasksNote(stuck, progress(1, { running: 0, waiting: 3 }))).toBe("3 cannot run");
  });
});

test.each([
  [0, 0, "no task failed"],
  [2, 2, "none retried"],
  [2, 5, "3 more retried"],
])("%i errors among %i exceptions read %j", (n_errors, n_exceptions, text) =>
  expect(errorsNote({ n_errors, n_exceptions })).toBe(text),
);

describe("the cost of a cluster", () => {
  const cluster = (total: number, idle: number, per_hour: number) =>
    costNote({ cost: { total, per_hour } } as OneCluster, idle);

  test.each([
    [cluster(2, 0.5, 0.5), "$0.50/h, 50 % idle"],
    [cluster(0, 0, 0.001), "less than $0.01/h"],
  ])("it reads %j", (text, expected) => expect(text).toBe(expected));

  test("idle is what is not computing, of the same thread time", () => {
    const totals = { duration_us: 43e6, tasks: 1016, compute_us: 221e6, thread_us: 255e6 };
    expect(computeShare(totals)).toBeCloseTo(0.867, 3);
    expect(computeShare({ ...totals, thread_us: 0 })).toBe(0);
    const c = { duration: 43, n_tasks: 1016, compute_seconds: 221, thread_seconds: 255 } as OneCluster;
    expect(totalsOf(c)).toEqual(totals);
  });
});

describe("the code of a computation", () => {
  const call = (code: string, code_line: number) => callText({ code, code_line } as Computation);

  test("it is the line that made the call", () => expect(call("x = 1\n  x.compute()", 1)).toBe("x.compute()"));
  test("without a line it is the first that is not empty", () => expect(call("\n  x = 1\ny", -1)).toBe("x = 1"));
  test("it may be missing", () => expect(call("", 0)).toBe("code not recorded"));
});

test("tags are separated by commas, trimmed and unique", () => {
  expect(parseTags("nightly, big , nightly,,")).toEqual(["nightly", "big"]);
  expect(parseTags("  ")).toEqual([]);
});

describe("the redirect after sign-in", () => {
  const origin = "https://dask.example";
  const to = (requested: string) => safeRedirect(requested, "/", origin);

  test("pages of this server are allowed", () => {
    expect(to("/ours/clusters?q=x")).toBe(`${origin}/ours/clusters?q=x`);
  });

  test.each([
    "",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "https://evil.example",
    "javascript:alert(1)",
  ])("%j leads home", (requested) => expect(to(requested)).toBe("/"));
});
