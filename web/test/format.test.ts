import { describe, expect, test } from "vitest";
import { clock, count, counted, duration, moment, nbytes, nbytesOf, percent, quantity, shares, span } from "../src/model/format";

describe("the same texts as tests/unit/test_units.py", () => {
  test.each([
    [0, "0 µs"], [1, "1 µs"], [12, "12 µs"], [999, "999 µs"], [999.6, "1 ms"], [1_000, "1 ms"], [1_234, "1.23 ms"], [83_000, "83 ms"],
    [999_499, "999 ms"], [999_600, "1.00 s"], [1_240_000, "1.24 s"], [9_999_000, "10.0 s"], [59_940_000, "59.9 s"],
    [59_960_000, "1 min 0 s"], [200_000_000, "3 min 20 s"], [3_599_700_000, "1 h 0 min"], [7_500_000_000, "2 h 5 min"],
    [330_000_000_000, "3 d 20 h"], [1e18, "11,574,074 d 2 h"], [-1_500, "-1.5 ms"], [-0.3, "0 µs"],
  ])("duration(%s) is %s", (us, text) => expect(duration(us)).toBe(text));

  test.each([
    [0, "0 B"], [1_023, "1023 B"], [1_023.7, "1 KiB"], [1_024, "1 KiB"], [1_536, "1.5 KiB"], [1_024_000, "1,000 KiB"], [1_048_575, "1 MiB"],
    [1.5 * 2 ** 30, "1.5 GiB"], [2 ** 63, "8 EiB"], [2 ** 80, "1,048,576 EiB"], [-5, "-5 B"], [-(2 ** 20), "-1 MiB"],
  ])("nbytes(%s) is %s", (n, text) => expect(nbytes(n)).toBe(text));

  test.each([
    [0, "0 %"], [0.0001, "<0.1 %"], [0.003, "0.3 %"], [0.42, "42 %"], [0.996, ">99 %"], [1, "100 %"], [12.5, "1,250 %"], [-0.1, "-10 %"],
  ])("percent(%s) is %s", (x, text) => expect(percent(x)).toBe(text));

  test.each([
    [0, "–"], [1_700_000_000_123_456, "2023-11-14T22:13:20Z"], [-1, "1969-12-31T23:59:59Z"], [2 ** 63, "9223372036854775808 µs since 1970"],
  ])("moment(%s) is %s", (us, text) => expect(moment(us)).toBe(text));

  test.each([
    [1.5, "seconds", "1.50 s"], [2 ** 30, "bytes", "1 GiB"], [17, "count", "17×"], [2.5, "furlongs", "2.5 furlongs"], [1e20, "", "1e+20"],
    [NaN, "watts", "nan watts"], [Infinity, "", "inf"], [1e308, "seconds", "1e+308 seconds"],
  ])("quantity(%s, %s) is %s", (value, unit, text) => expect(quantity(value, unit)).toBe(text));

  test("counts", () => {
    expect(count(1_234_567)).toBe("1,234,567");
    expect(counted(1, "task")).toBe("1 task");
    expect(counted(2_000, "task")).toBe("2,000 tasks");
    expect(counted(2, "batch", "batches")).toBe("2 batches");
  });
});

test("a moment of the run counts from its start", () => {
  expect(clock(141_600_000)).toBe("2:21.6");
  expect(clock(141_600_000, 1e6)).toBe("2:22");
  expect(clock(3_723_040_000, 10_000)).toBe("1:02:03.04");
  expect(clock(59_999_999, 1e6)).toBe("1:00");
});

test("shares of one whole add up to 100", () => {
  const texts = shares([333, 333, 334]);
  expect(texts.map((t) => Number.parseInt(t, 10)).reduce((a, b) => a + b)).toBe(100);
  expect(shares([0, 0])).toEqual(["0 %", "0 %"]);
  expect(shares([999, 1])[1]).toBe("0.1 %");
});

test.each([
  [0, 90e6, "0:00 to 1:30"], [1.9e6, 2.2e6, "0:01.9 to 0:02.2"], [2e6, 2.01e6, "0:02.0"],
])("a stretch from %d to %d reads %s", (from, to, text) => expect(span(from, to)).toBe(text));

test("two sizes share a unit", () => expect(nbytesOf(108 * 2 ** 30, 128 * 2 ** 30)).toEqual(["108", "128 GiB"]));
test.each([
  [727 * 2 ** 30, 1024 * 2 ** 30, "727 of 1,024 GiB"], [608 * 2 ** 20, 24_104 * 2 ** 20, "608 MiB of 23.5 GiB"], [108 * 2 ** 30, 3200 * 2 ** 30, "108 GiB of 3.12 TiB"],
  [512, 1000, "512 of 1,000 B"], [1023.9 * 2 ** 20, 2 ** 30, "1 GiB of 1 GiB"], [2 ** 30, 2 ** 29, "1 of 0.5 GiB"],
])("%d of %d bytes read %s", (part, whole, text) => expect(nbytesOf(part, whole).join(" of ")).toBe(text));
