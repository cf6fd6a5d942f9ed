import { describe, expect, test } from "vitest";
import { eventText, rawDetail } from "../../src/model/text/event-text";

const text = (kind: string, detail: unknown, worker = "") =>
  eventText({ kind, text: typeof detail === "string" ? detail : JSON.stringify(detail), worker: "tcp://1" }, worker);

describe("events are sentences", () => {
  test.each([
    [text("update-graph", { metrics: { tasks: 1021 }, status: "OK" }), "1,021 tasks were submitted"],
    [text("update-graph", { metrics: { tasks: 1 }, status: "OK" }), "1 task was submitted"],
    [text("update-graph", { status: "error" }), "A graph could not be submitted"],
    [text("gather", { count: 1 }), "1 result was gathered"],
    [text("add-worker", {}, "2"), "Worker 2 joined"],
    [text("remove-worker", { "processing-tasks": [], "lost-computed-tasks": [] }, "2"), "Worker 2 left"],
    [
      text("remove-worker", { "processing-tasks": ["a"], "lost-computed-tasks": { count: 40, first: ["b"] } }, "2"),
      "Worker 2 left; 1 task was assigned to it; 40 results were lost",
    ],
    [
      text("worker-status-change", { "prev-status": "running", status: "paused" }),
      "A worker changed from running to paused",
    ],
    [text("restart", ""), "The cluster was restarted"],
    [text("seceded", "some-key", "2"), "A task on Worker 2 left its thread"],
  ])("%j", (found, expected) => expect(found).toBe(expected));
});

test("log lines and unknown kinds are shown as they are", () => {
  expect(text("error", "Compute Failed\nKey: x")).toBe("Compute Failed Key: x");
  expect(text("my-kind", { a: 1 })).toBe("my kind");
  expect(text("my-kind", "")).toBe("my kind");
  expect(text("constructor", { a: 1 })).toBe("constructor");
  expect(text("gather", '{"count": 1')).toBe("gather");
});

test("the detail is shown if the sentence leaves something out", () => {
  expect(rawDetail('{"count":1}')).toBe('{\n  "count": 1\n}');
  expect(rawDetail('{"cut')).toBe('{"cut');
  expect(rawDetail("one line")).toBe("");
  expect(rawDetail("two\nlines")).toBe("two\nlines");
  expect(rawDetail("")).toBe("");
  expect(rawDetail("x".repeat(81))).toHaveLength(81);
});
