import { describe, expect, test } from "vitest";
import type { ClusterProgress, Computation, ComputationProgress, OneCluster } from "../../src/api/server.gen";
import { parseTags } from "../../src/app/parts/edit-dialog";
import { progressHeadline } from "../../src/app/run/cluster-progress";
import { callText, costNote, failures } from "../../src/app/run/cluster-text";
import { comparison } from "../../src/app/run/computation";
import { safeRedirect } from "../../src/app/shell/redirects";

describe("the failures of a cluster", () => {
  const of = (n_errors: number, n_exceptions: number) => failures({ n_errors, n_exceptions });

  test.each([
    [of(0, 0), "no task failed"],
    [of(1, 2), "1 task failed, 1 was retried"],
    [of(0, 3), "no task failed, 3 were retried"],
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
  test("it is empty without one, with several, and before the answer", () => {
    expect([of(0), of(2, {}, {}), of(2, {}), progressHeadline(null)]).toEqual(["", "", "", ""]);
  });
});

describe("the cost of a cluster", () => {
  const cluster = (state: OneCluster["state"], total: number, idle: number, per_hour = 0) =>
    costNote({ state, cost: { total, idle, per_hour } } as OneCluster);

  test.each([
    [cluster("finished", 0.001, 0.00077), "77 % of it idle"],
    [cluster("finished", 0, 0), "no cost"],
    [cluster("running", 2, 1, 0.5), "$0.50 per hour, 50 % of it idle"],
    [cluster("idle", 0, 0, 0.001), "less than $0.01 per hour"],
  ])("it reads %j", (text, expected) => expect(text).toBe(expected));
});

describe("the code of a computation", () => {
  const call = (code: string, code_line: number) => callText({ code, code_line } as Computation);

  test("it is the line that made the call", () => expect(call("x = 1\n  x.compute()", 1)).toBe("x.compute()"));
  test("without a line it is the first that is not empty", () => expect(call("\n  x = 1\ny", -1)).toBe("x = 1"));
  test("it may be missing", () => expect(call("", 0)).toBe("code not recorded"));
});

describe("the comparison with earlier runs", () => {
  const run = (duration: number, state: Computation["state"] = "finished") => ({ duration, state }) as Computation;
  const compare = (duration: number, ...earlier: Computation[]) =>
    comparison({ state: "finished", duration, earlier } as Parameters<typeof comparison>[0]);

  test.each([
    [compare(12, run(10)), "20 % longer than the median of 1 earlier run · "],
    [compare(5, run(10), run(10)), "50 % shorter than the median of 2 earlier runs · "],
    [compare(10, run(5), run(15)), "same duration as the median of 2 earlier runs · "],
    [compare(10, run(1, "failed")), ""],
    [compare(10, run(0)), ""],
    [compare(10), ""],
  ])("it reads %j", (text, expected) => expect(text).toBe(expected));
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
