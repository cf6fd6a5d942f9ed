import { expect, test } from "vitest";
import { CATEGORIES } from "../../src/api/schema.gen";
import { ACTIVITY_NAMES, capital, categoryOf } from "../../src/model/activity";

test.each([
  ["thread-cpu", "cpu"],
  ["compute", "cpu"],
  ["p2p-get-output-cpu", "cpu"],
  ["p2p-get-output-noncpu", "noncpu"],
  ["thread-noncpu", "noncpu"],
  ["executor", "noncpu"],
  ["other", "noncpu"],
  ["serialize", "serialize"],
  ["deserialize", "serialize"],
  ["compress", "serialize"],
  ["disk-read", "disk"],
  ["disk-write", "disk"],
  ["memory-read", "disk"],
  ["network", "transfer"],
  ["get-data", "transfer"],
  ["failed", "failed"],
  ["cancelled", "failed"],
  ["idle", "idle"],
])("Dask's label %s belongs to %s", (label, category) => expect(categoryOf(label)).toBe(category));

test.each(["my-reader", "", "parse json"])("the user-defined label %j has no category", (label) => {
  expect(categoryOf(label)).toBeNull();
});

test("labels match in any case", () => expect(categoryOf("Thread-CPU")).toBe("cpu"));

test("every category has a name", () => {
  for (const category of CATEGORIES) expect(ACTIVITY_NAMES[category]).toBeTruthy();
});

test.each([
  ["transfer", "Transfer"],
  ["CPU", "CPU"],
  ["less than $0.01", "Less than $0.01"],
  ["$1", "$1"],
  ["", ""],
])("%j is capitalized as %j", (text, result) => expect(capital(text)).toBe(result));
