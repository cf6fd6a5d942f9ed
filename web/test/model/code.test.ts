import { expect, test } from "vitest";
import type { Computation } from "../../src/api/schema.gen";
import { callOf, codeFiles, wallOf } from "../../src/model/code";

const call = (id: string, code: string, line: number, start: number, stop: number): Computation => ({
  computation: id,
  state: "finished",
  start_us: start,
  stop_us: stop,
  tasks: 1,
  errors: 0,
  span: "",
  code,
  code_line: line,
  code_file: code ? "work.py" : "",
  graph_us: 0,
});

test("a file is listed once, with the time of each line of its excerpts", () => {
  const [file, ...others] = codeFiles(
    [
      call("a", "x\ny", 0, 0, 10),
      call("b", "z", 0, 10, 15),
      call("c", "x\ny", 1, 20, 50),
      call("d", "x\ny", 1, 60, 70),
    ],
    100,
  );
  expect(others).toEqual([]);
  expect(file.calls.map((c) => c.computation)).toEqual(["a", "b", "c", "d"]);
  expect(file.excerpts.map((e) => [e.code, [...e.time]])).toEqual([
    [
      "x\ny",
      [
        [0, 10],
        [1, 40],
      ],
    ],
    ["z", [[0, 5]]],
  ]);
});

test("an excerpt that is part of a longer one counts there", () => {
  const [file] = codeFiles(
    [call("a", "def f():\n  y\n", 1, 0, 10), call("b", "x\ndef f():\n  y\nf()", 3, 20, 50)],
    100,
  );
  expect(file.excerpts.map((e) => [...e.time])).toEqual([
    [
      [2, 10],
      [3, 30],
    ],
  ]);
});

test("computations without code are listed one by one", () => {
  expect(codeFiles([call("a", "", 0, 0, 1), call("b", "", 0, 1, 2)], 2)).toHaveLength(2);
});

test("a computation that is running counts until the end of the report", () => {
  expect(wallOf({ start_us: 10, stop_us: 0 }, 100)).toBe(90);
});

test("the call is the line that submitted the computation", () => {
  expect(callOf({ code: "import dask\n  x.compute()\n", code_line: 1 })).toBe("x.compute()");
  expect(callOf({ code: "\n  first\nsecond", code_line: 99 })).toBe("first");
  expect(callOf({ code: "", code_line: 0 })).toBe("");
});
