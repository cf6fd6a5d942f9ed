import { describe, expect, test } from "vitest";
import { measureName, measureText } from "../../src/model/measures";

describe("values have the unit of their measure", () => {
  test.each([
    ["process", 2 ** 30, "1 GiB"],
    ["managed_total", 2 ** 20, "1 MiB"],
    ["spilled", 0, "0 B"],
    ["net_read_bps", 2 ** 20, "1 MiB/s"],
    ["loop_lag_us", 20_000, "20 ms"],
    ["cpu_percent", 99.6, "100 %"],
    ["gil_contention", 0.25, "25 %"],
    ["executing", 4, "4"],
    ["processing", 1234, "1,234"],
    ["fds", 12, "12"],
    ["unknown", 2.4, "2"],
  ])("%s %d is formatted as %s", (measure, value, text) => expect(measureText(measure, value)).toBe(text));
});

test("known measures have a name, others use their ID", () => {
  expect(measureName("process")).toBe("Process memory");
  expect(measureName("my_own_measure")).toBe("my own measure");
});
