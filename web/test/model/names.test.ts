import { describe, expect, test } from "vitest";
import { sharedLength, workerNames } from "../../src/model/worker-names";

test.each([
  [["SLURMCluster-1", "SLURMCluster-12"], 13],
  [["tcp://10.0.0.1:40001", "tcp://10.0.0.1:40002"], 15],
  [["dask-worker-ä1", "dask-worker-ä2", "dask-worker-b"], 12],
])("the common prefix of %j has length %d", (names, length) => expect(sharedLength(names)).toBe(length));

test.each([
  ["no names", []],
  ["one name", ["one-long-name-1"]],
  ["equal names", ["one-long-name-1", "one-long-name-1"]],
  ["a short common prefix", ["w-1", "w-2"]],
  ["nothing in common", ["tcp://10.0.0.1:1", "other"]],
  ["a common prefix without a separator", ["workernumberone1", "workernumberone2"]],
  ["a name that is the prefix itself", ["one-long-name-", "one-long-name-2"]],
  ["an empty name", ["", "one-long-name-2"]],
])("names are not shortened with %s", (_, names) => expect(sharedLength(names)).toBe(0));

test("words are not cut in the middle", () => {
  const names = ["cluster-node-alpha", "cluster-node-alfa"];
  expect(names.map((name) => name.slice(sharedLength(names)))).toEqual(["alpha", "alfa"]);
});

describe("names of workers", () => {
  const worker = (port: number, name: string, start_us: number) => ({ worker: `tcp://:${port}`, name, start_us });
  const names = (...workers: ReturnType<typeof worker>[]) => Object.fromEntries(workerNames(workers));

  test("a replacement is told apart from the worker it replaces, in whatever order they are listed", () => {
    expect(names(worker(9, "2", 50), worker(1, "1", 0), worker(2, "2", 0))).toEqual({
      "tcp://:1": "1",
      "tcp://:2": "2",
      "tcp://:9": "2 (restarted)",
    });
  });
  test("restarts are counted", () => {
    const all = [1, 2, 3, 4].map((i) => worker(i, "a", i));
    expect(Object.values(names(...all))).toEqual([
      "a",
      "a (restarted)",
      "a (restarted twice)",
      "a (restarted 3 times)",
    ]);
  });
  test("a worker that connected again at its address is the same one", () => {
    expect(names(worker(1, "a", 0), worker(1, "a", 5))).toEqual({ "tcp://:1": "a" });
  });
  test("a worker without a name has its address", () => {
    expect(names(worker(1, "", 0))).toEqual({ "tcp://:1": "tcp://:1" });
  });
});
