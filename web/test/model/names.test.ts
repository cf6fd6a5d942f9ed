import { expect, test } from "vitest";
import { sharedLength } from "../../src/model/model";

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
