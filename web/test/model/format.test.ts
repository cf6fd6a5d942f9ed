import { describe, expect, test } from "vitest";
import {
  ago,
  clock,
  count,
  counted,
  dollarParts,
  dollars,
  duration,
  moment,
  money,
  nbytes,
  nbytesOf,
  percent,
  quantity,
  shares,
  span,
} from "../../src/model/text/format";

const SECOND = 1e6;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe("durations", () => {
  test.each([
    [0, "0 s"],
    [1, "1 µs"],
    [12, "12 µs"],
    [999, "999 µs"],
    [999.6, "1 ms"],
    [1_000, "1 ms"],
    [1_234, "1.23 ms"],
    [83_000, "83 ms"],
    [999_499, "999 ms"],
    [999_600, "1.00 s"],
    [1_240_000, "1.24 s"],
    [9_999_000, "10.0 s"],
    [59_940_000, "59.9 s"],
    [59_960_000, "1 min 0 s"],
    [200_000_000, "3 min 20 s"],
    [3_599_700_000, "1 h 0 min"],
    [7_500_000_000, "2 h 5 min"],
    [330_000_000_000, "3 d 20 h"],
    [1e18, "11,574,074 d 2 h"],
    [-1_500, "-1.5 ms"],
    [-0.3, "0 s"],
  ])("%s µs is formatted as %s", (us, text) => expect(duration(us)).toBe(text));

  test("halves are rounded to the even neighbour, as in Python", () => {
    expect(duration(0.5)).toBe("0 s");
    expect(duration(1.5)).toBe("2 µs");
    expect(duration(2.5)).toBe("2 µs");
    expect(duration(1_125)).toBe("1.12 ms");
    expect(duration(1_375)).toBe("1.38 ms");
  });
});

describe("sizes", () => {
  test.each([
    [0, "0 B"],
    [1_023, "1023 B"],
    [1_023.7, "1 KiB"],
    [1_024, "1 KiB"],
    [1_536, "1.5 KiB"],
    [1_024_000, "1,000 KiB"],
    [1_048_575, "1 MiB"],
    [1.5 * 2 ** 30, "1.5 GiB"],
    [2 ** 63, "8 EiB"],
    [2 ** 80, "1,048,576 EiB"],
    [-5, "-5 B"],
    [-(2 ** 20), "-1 MiB"],
  ])("%s bytes are formatted as %s", (n, text) => expect(nbytes(n)).toBe(text));

  test.each([
    [727 * 2 ** 30, 1024 * 2 ** 30, "727 of 1,024 GiB"],
    [108 * 2 ** 30, 128 * 2 ** 30, "108 of 128 GiB"],
    [608 * 2 ** 20, 24_104 * 2 ** 20, "608 MiB of 23.5 GiB"],
    [108 * 2 ** 30, 3200 * 2 ** 30, "108 GiB of 3.12 TiB"],
    [512, 1000, "512 of 1,000 B"],
    [0, 0, "0 of 0 B"],
    [0, 2 ** 30, "0 B of 1 GiB"],
    [1023.9 * 2 ** 20, 2 ** 30, "1 GiB of 1 GiB"],
    [2 ** 30, 2 ** 29, "1 of 0.5 GiB"],
  ])("%d of %d bytes are formatted as %s", (part, whole, text) => {
    expect(nbytesOf(part, whole).join(" of ")).toBe(text);
  });
});

describe("percentages", () => {
  test.each([
    [0, "0 %"],
    [0.0001, "<0.1 %"],
    [0.003, "0.3 %"],
    [0.0994, "9.9 %"],
    [0.0995, "10 %"],
    [0.42, "42 %"],
    [0.9949, "99 %"],
    [0.996, ">99 %"],
    [1, "100 %"],
    [12.5, "1,250 %"],
    [-0.1, "-10 %"],
  ])("%s is formatted as %s", (x, text) => expect(percent(x)).toBe(text));

  test("shares of one whole add up to 100", () => {
    const texts = shares([333, 333, 334]);
    expect(texts.map((t) => Number.parseInt(t, 10)).reduce((a, b) => a + b)).toBe(100);
  });

  test("shares give the remainder to the largest fractions", () => {
    expect(shares([2, 1])).toEqual(["67 %", "33 %"]);
    expect(shares([1, 1, 1])).toEqual(["34 %", "33 %", "33 %"]);
  });

  test("shares below one percent keep a digit", () => {
    expect(shares([999, 1])).toEqual(["100 %", "0.1 %"]);
    expect(shares([1e9, 1])[1]).toBe("<0.1 %");
  });

  test("shares of a part add up to the part", () => {
    expect(shares([2, 1], 37)).toEqual(["25 %", "12 %"]);
    expect(shares([2, 1], 0.6)).toEqual(["0.4 %", "0.2 %"]);
  });

  test("shares of nothing are zero", () => {
    expect(shares([0, 0])).toEqual(["0 %", "0 %"]);
    expect(shares([])).toEqual([]);
  });

  test("a single share is 100 percent", () => expect(shares([5])).toEqual(["100 %"]));
});

describe("money", () => {
  test("parts add up to the amount as it is shown", () => {
    expect(dollars(0.08)).toBe("$0.08");
    // Each for itself would be $0.04 and $0.05.
    expect(dollarParts([0.0354, 0.0451])).toEqual(["$0.04", "$0.04"]);
    expect(dollarParts([0.079, 0.001])).toEqual(["$0.08", "<$0.01"]);
    expect(dollarParts([999.6, 400.3])).toEqual(["$1,000", "$400.00"]);
    expect(dollarParts([0, 0.3])).toEqual(["$0", "$0.30"]);
    expect(dollarParts([])).toEqual([]);
    // Equal halves are equal, although together they are a cent.
    expect(dollarParts([0.0043, 0.0042])).toEqual(["<$0.01", "<$0.01"]);
  });

  test.each([
    [0, "$0"],
    [0.004, "<$0.01"],
    [0.005, "$0.01"],
    [1.239, "$1.24"],
    [999.99, "$999.99"],
    [999.995, "$1,000"],
    [1_234_567.8, "$1,234,568"],
    [-3, "-$3.00"],
    [-0.001, "-<$0.01"],
  ])("%s dollars are formatted as %s in a table", (x, text) => expect(dollars(x)).toBe(text));

  test("small amounts are spelled out in sentences", () => {
    expect(money(0.0001)).toBe("less than $0.01");
    expect(money(0)).toBe("$0");
    expect(money(0.005)).toBe("$0.01");
    expect(money(12)).toBe("$12.00");
  });
});

describe("relative times", () => {
  test.each([
    [-5 * SECOND, "now"],
    [0, "now"],
    [1.9 * SECOND, "now"],
    [2 * SECOND, "2 s ago"],
    [9.92 * SECOND, "9 s ago"],
    [59.9 * SECOND, "59 s ago"],
    [MINUTE, "1 min ago"],
    [59.9 * MINUTE, "59 min ago"],
    [HOUR, "1 h ago"],
    [23.9 * HOUR, "23 h ago"],
    [DAY, "yesterday"],
    [2 * DAY, "2 days ago"],
    [13.9 * DAY, "13 days ago"],
    [14 * DAY, "2 weeks ago"],
    [59 * DAY, "8 weeks ago"],
    [60 * DAY, "2 months ago"],
    [365_000 * DAY, "12,166 months ago"],
  ])("%s µs ago is formatted as %s", (us, text) => expect(ago(us)).toBe(text));
});

describe("absolute times", () => {
  test.each([
    [0, "–"],
    [1_700_000_000_123_456, "2023-11-14T22:13:20Z"],
    [-1, "1969-12-31T23:59:59Z"],
    [2 ** 63, "9223372036854775808 µs since 1970"],
  ])("%s is formatted as %s", (us, text) => expect(moment(us)).toBe(text));

  test("times that are not a number are not recorded", () => {
    expect(moment(Number.NaN)).toBe("not recorded");
    expect(moment(Number.POSITIVE_INFINITY)).toBe("not recorded");
  });
});

describe("times since the start of the run", () => {
  test("the step of the axis sets the number of digits", () => {
    expect(clock(141_600_000)).toBe("2:21.6");
    expect(clock(141_600_000, 1e6)).toBe("2:22");
    expect(clock(1_234_567, 10_000)).toBe("0:01.23");
    expect(clock(1_234_567, 1_000)).toBe("0:01.235");
    expect(clock(1_234_567, 10)).toBe("0:01.234567");
    expect(clock(3_723_040_000, 10_000)).toBe("1:02:03.04");
  });

  test("seconds that round up to a minute carry over", () => {
    expect(clock(59_999_999, 1e6)).toBe("1:00");
    expect(clock(3_599_999_999, 1e6)).toBe("1:00:00");
  });

  test("negative times have a sign unless they round to zero", () => {
    expect(clock(-1_500_000)).toBe("-0:01.5");
    expect(clock(-1)).toBe("0:00.0");
  });

  test("runs of more than a day count hours", () => expect(clock(100 * HOUR, 1e6)).toBe("100:00:00"));

  test.each([
    [0, 90e6, "0:00 to 1:30"],
    [1.9e6, 2.2e6, "0:01.9 to 0:02.2"],
    [2e6, 2.01e6, "0:02.0"],
  ])("the range from %d to %d is formatted as %s", (from, to, text) => expect(span(from, to)).toBe(text));
});

describe("counts and quantities", () => {
  test("counts have thousands separators and a plural", () => {
    expect(count(0)).toBe("0");
    expect(count(1_234_567)).toBe("1,234,567");
    expect(counted(0, "task")).toBe("0 tasks");
    expect(counted(1, "task")).toBe("1 task");
    expect(counted(2_000, "task")).toBe("2,000 tasks");
    expect(counted(2, "batch", "batches")).toBe("2 batches");
    expect(counted(1, "batch", "batches")).toBe("1 batch");
  });

  test.each([
    [1.5, "seconds", "1.50 s"],
    [2 ** 30, "bytes", "1 GiB"],
    [17, "count", "17×"],
    [2.5, "furlongs", "2.5 furlongs"],
    [0, "watts", "0 watts"],
    [1234.5, "watts", "1234 watts"],
    [12_345.6, "watts", "1.235e+04 watts"],
    [0.00001, "watts", "1e-05 watts"],
    [-3, "", "-3"],
    [1e20, "", "1e+20"],
    [Number.NaN, "watts", "nan watts"],
    [Number.POSITIVE_INFINITY, "", "inf"],
    [Number.NEGATIVE_INFINITY, "seconds", "-inf seconds"],
    [1e308, "seconds", "1e+308 seconds"],
  ])("%s %s is formatted as %s", (value, unit, text) => expect(quantity(value, unit)).toBe(text));
});
