import { expect, test } from "vitest";
import { errorName, impactNote, impactText } from "../../src/model/error-impact";

test.each([
  [153, 51, 3, "Ended 3 computations", "51 failed, 102 retried"],
  [5, 5, 1, "Ended 1 computation", "5 failed, none retried"],
  [6, 5, 0, "Failed 5 times", "5 failed, 1 retried"],
  [30, 0, 0, "All 30 retried", "no task failed"],
  [1, 0, 0, "Retried", "no task failed"],
])("%d occurrences, %d fatal, %d computations", (count, n_fatal, n_computations, text, note) => {
  expect(impactText({ count, n_fatal, n_computations })).toBe(text);
  expect(impactNote({ count, n_fatal, n_computations })).toBe(note);
});

test("an error group is named after its type and function", () => {
  expect(errorName({ type: "ValueError", function: "parse" })).toBe("ValueError in parse");
  expect(errorName({ type: "ValueError", function: "" })).toBe("ValueError");
});
