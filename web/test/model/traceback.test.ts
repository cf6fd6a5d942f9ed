import { describe, expect, test } from "vitest";
import { type Frame, fold, innermost, packages, parseTraceback } from "../../src/model/text/traceback";

const TEXT = `Traceback (most recent call last):
  File "/venv/lib/python3.12/site-packages/dask/x.py", line 3, in run
    f()
  File "/home/me/job.py", line 8, in job
    1/0
    ~^~
ZeroDivisionError: division by zero`;

const frame = (file: string): Frame => parseTraceback(`  File "${file}", line 1, in f`)[0].frames[0];

describe("parsing", () => {
  test("frames have file, line, function and code", () => {
    const [{ frames, error }] = parseTraceback(TEXT);
    expect(frames).toHaveLength(2);
    expect(frames[1]).toEqual({
      file: "/home/me/job.py",
      line: 8,
      name: "job",
      code: ["1/0", "~^~"],
      isUserCode: true,
    });
    expect(error).toBe("ZeroDivisionError: division by zero");
  });

  test("module level frames may have no function", () => {
    expect(parseTraceback('  File "a.py", line 1')[0].frames[0]).toMatchObject({ name: "", line: 1 });
    expect(parseTraceback('  File "a.py", line 1, in <module>')[0].frames[0].name).toBe("<module>");
  });

  test("code keeps its indentation relative to the frame", () => {
    const [{ frames }] = parseTraceback('  File "a.py", line 1, in f\n    if x:\n        y()');
    expect(frames[0].code).toEqual(["if x:", "    y()"]);
  });

  test.each([
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
  ])("an exception comes after its cause: %s", (link) => {
    const chain = parseTraceback(`${TEXT}\n\n${link}\n\n${TEXT.replace("ZeroDivisionError", "ValueError")}\nA note`);
    expect(chain.map(({ error, frames }) => [error, frames.length])).toEqual([
      ["ZeroDivisionError: division by zero", 2],
      ["ValueError: division by zero\nA note", 2],
    ]);
  });

  test.each(["", "not a traceback", "KeyError: 'x'\nsecond line"])("%j has no frames", (text) => {
    expect(parseTraceback(text)).toEqual([{ error: text, frames: [] }]);
  });

  test("file names with quotes and spaces are kept", () => {
    expect(frame('/tmp/a "b".py').file).toBe('/tmp/a "b".py');
  });

  test.each([
    ["/home/me/job.py", true],
    ["C:\\Users\\me\\job.py", true],
    ["<string>", true],
    ["/home/me/my_dask/job.py", true],
    ["/venv/lib/python3.12/site-packages/pandas/x.py", false],
    ["/usr/lib/python3/dist-packages/numpy/x.py", false],
    ["/usr/lib/python3.12/threading.py", false],
    ["C:\\Python\\Lib\\threading.py", false],
    ["<frozen importlib._bootstrap>", false],
    ["/src/distributed/worker.py", false],
    ["/src/dask/core.py", false],
  ])("%s is user code: %s", (file, isUserCode) => expect(frame(file).isUserCode).toBe(isUserCode));
});

describe("grouping frames", () => {
  const user = frame("/home/me/job.py");
  const library = frame("/venv/site-packages/dask/x.py");

  test("the innermost frame comes first", () => {
    expect(fold(parseTraceback(TEXT)[0].frames).map((g) => [g.isUserCode, g.frames.length])).toEqual([
      [true, 1],
      [false, 1],
    ]);
  });

  test("adjacent library frames form one group", () => {
    expect(fold([library, library, user, library]).map((g) => g.frames.length)).toEqual([1, 1, 2]);
  });

  test("user frames stay separate", () => expect(fold([user, user])).toHaveLength(2));

  test("no frames have no groups", () => expect(fold([])).toEqual([]));

  test("the innermost groups end before the first user frame that is too many", () => {
    const groups = fold([user, user, library, user, user, library]);
    expect(innermost(groups, 2).map((g) => g.isUserCode)).toEqual([false, true, true, false]);
    expect(innermost(groups, 9)).toEqual(groups);
    expect(innermost(fold([library]), 0)).toHaveLength(1);
  });
});

describe("package names", () => {
  const of = (...names: string[]) => packages(names.map((name) => frame(`/venv/site-packages/${name}/x.py`)));

  test("each package is named once", () => {
    expect(of("dask", "dask")).toBe("dask");
    expect(of("dask", "pandas")).toBe("dask and pandas");
    expect(of("dask", "pandas", "numpy")).toBe("dask, pandas and numpy");
  });

  test("more than three packages are summarized", () => {
    expect(of("a", "b", "c", "d", "e")).toBe("a, b, c and others");
  });

  test("the standard library is called Python", () => {
    expect(packages([frame("/usr/lib/python3.12/threading.py")])).toBe("Python");
  });

  test("single-file packages have no extension", () => {
    expect(packages([frame("/venv/site-packages/six.py")])).toBe("six");
  });

  test("no frames have no packages", () => expect(packages([])).toBe(""));
});
