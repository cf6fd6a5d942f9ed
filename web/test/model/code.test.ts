import { expect, test } from "vitest";
import type { Computation } from "../../src/api/schema.gen";
import { callOf, codeBlocks, wallOf } from "../../src/model/code";

const call = (id: string, code: string, line: number, start: number, stop: number): Computation => ({
  computation: id,
  state: "done",
  start_us: start,
  stop_us: stop,
  tasks: 1,
  errors: 0,
  span: "",
  code,
  code_line: line,
  code_file: code ? "work.py" : "",
});

test("code that submits several computations is listed once, with the time of each line", () => {
  const blocks = codeBlocks(
    [
      call("a", "x\ny", 0, 0, 10),
      call("b", "z", 0, 10, 15),
      call("c", "x\ny", 1, 20, 50),
      call("d", "x\ny", 1, 60, 70),
    ],
    100,
  );
  expect(blocks.map((b) => b.calls.map((c) => c.computation))).toEqual([["a", "c", "d"], ["b"]]);
  expect([...blocks[0].time]).toEqual([
    [0, 10],
    [1, 40],
  ]);
});

test("computations without code are listed one by one", () => {
  expect(codeBlocks([call("a", "", 0, 0, 1), call("b", "", 0, 1, 2)], 2)).toHaveLength(2);
});

test("a computation that is running counts until the end of the report", () => {
  expect(wallOf({ start_us: 10, stop_us: 0 }, 100)).toBe(90);
});

test("the call is the line that submitted the computation", () => {
  expect(callOf({ code: "import dask\n  x.compute()\n", code_line: 1 })).toBe("x.compute()");
  expect(callOf({ code: "\n  first\nsecond", code_line: 99 })).toBe("first");
  expect(callOf({ code: "", code_line: 0 })).toBe("");
});
