/** Formatting of numbers, with the same rules as daskscope/units.py. Times are in microseconds. */

const MS = 1_000;
const S = 1_000_000;
const MIN = 60 * S;
const HOUR = 60 * MIN;
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/** For numbers where nothing happened. */
export const NOTHING = "–";
/** For values that were not recorded. */
export const UNKNOWN = "not recorded";

/** Round like Python: halves go to the even neighbour. */
function round(x: number): number {
  const down = Math.floor(x);
  const rest = x - down;
  if (rest !== 0.5) return Math.round(x);
  return down % 2 === 0 ? down : down + 1;
}

/** Format like Python's f"{x:.2f}": halves go to the even neighbour, where toFixed takes the larger one. */
function fixed(x: number, digits: number): string {
  // Only these binary numbers are exact halves; others only look like halves after the multiplication.
  const between = Number.isInteger(x * 2 ** (digits + 1)) && Math.abs((x * 10 ** digits) % 1) === 0.5;
  return (between ? round(x * 10 ** digits) / 10 ** digits : x).toFixed(digits);
}

function commas(n: number, digits = 0): string {
  return n.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function three(value: number): string {
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  const text = fixed(value, digits);
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

export function duration(us: number): string {
  if (round(us) < 0) return `-${duration(-us)}`;
  if (round(us) === 0) return "0 s";
  if (round(us) < MS) return `${round(us)} µs`;
  if (round(us / MS) < 1000) return `${three(us / MS)} ms`;
  if (us < 59.95 * S) return us < 9.995 * S ? `${fixed(us / S, 2)} s` : `${fixed(us / S, 1)} s`;
  const seconds = round(us / S);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = round(us / MIN);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = round(us / HOUR);
  return `${commas(Math.floor(hours / 24))} d ${hours % 24} h`;
}

/** Format how long ago something happened: `now`, `6 s ago`, `5 min ago`, `3 h ago`, `yesterday`, `4 days ago`, `6 weeks ago`. */
export function ago(us: number): string {
  const s = us / 1e6;
  if (s < 2) return "now";
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  const days = Math.floor(s / 86400);
  if (days < 14) return days === 1 ? "yesterday" : `${days} days ago`;
  return days < 60 ? `${Math.floor(days / 7)} weeks ago` : `${count(Math.floor(days / 30))} months ago`;
}

/** Format an amount of money for a table cell: `$0`, `<$0.01`, `$1.24`, `$1,240`. */
export function dollars(x: number): string {
  if (x < 0) return `-${dollars(-x)}`;
  if (x < 0.005) return x > 0 ? "<$0.01" : "$0";
  const digits = x < 999.995 ? 2 : 0;
  return `$${x.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

/** Format the parts of an amount of money so that they add up to the amount as it is shown. */
export function dollarParts(parts: readonly number[]): string[] {
  const total = parts.reduce((a, b) => a + b, 0);
  const unit = total < 999.995 ? 0.01 : 1;
  const whole = remaindered(
    parts.map((x) => x / unit),
    Math.round(total / unit),
  );
  // A part below half a cent is "<$0.01", although its neighbour has the whole cent.
  const small = (x: number) => dollars(unit < 1 ? Math.min(x, 0.004) : x);
  return whole.map((n, i) => (n > 0 && parts[i] >= unit / 2 ? dollars(n * unit) : small(parts[i])));
}

/** Round numbers so that they add up to `total`: the largest remainders are rounded up. */
function remaindered(exact: readonly number[], total: number): number[] {
  const whole = exact.map(Math.floor);
  const order = exact.map((x, i) => ({ i, rest: x - whole[i] })).sort((a, b) => b.rest - a.rest);
  let left = total - whole.reduce((a, b) => a + b, 0);
  for (const { i } of order) if (left-- > 0) whole[i] += 1;
  return whole;
}

/** Format an amount of money for a sentence or a metric: `less than $0.01` instead of `<$0.01`. */
export function money(x: number): string {
  return x > 0 && x < 0.005 ? "less than $0.01" : dollars(x);
}

export function nbytes(n: number): string {
  if (round(n) < 0) return `-${nbytes(-n)}`;
  if (round(n) < 1024) return `${Math.abs(round(n))} B`;
  let power = Math.min(Math.trunc(Math.log2(n) / 10), BINARY.length - 1);
  let value = n / 1024 ** power;
  if (round(value) >= 1024 && power + 1 < BINARY.length) {
    power += 1;
    value /= 1024;
  }
  return value < 1000 ? `${three(value)} ${BINARY[power]}` : `${commas(round(value))} ${BINARY[power]}`;
}

/** Format a part and its whole, in one unit if the whole is short in it: "727" and "1,024 GiB", but "608 MiB" and "23.5 GiB". */
export function nbytesOf(part: number, whole: number): [string, string] {
  const power = part < 1024 ? 0 : Math.min(Math.trunc(Math.log2(part) / 10), BINARY.length - 1);
  const [inside, all] = [part / 1024 ** power, whole / 1024 ** power];
  if (round(all) >= 2000 || round(inside) >= 1024) return [nbytes(part), nbytes(whole)];
  const show = (v: number) => (v < 1000 ? three(v) : commas(round(v)));
  return [show(inside), `${show(all)} ${BINARY[power]}`];
}

/** Format events per second. */
export function frequency(hz: number): string {
  for (const [limit, unit, size] of [
    [999.5, "Hz", 1],
    [999.5e3, "kHz", 1e3],
    [999.5e6, "MHz", 1e6],
  ] as const)
    if (hz < limit) return `${three(hz / size)} ${unit}`;
  return `${three(hz / 1e9)} GHz`;
}

export function count(n: number): string {
  return commas(n);
}

export function counted(n: number, noun: string, plural = ""): string {
  return `${commas(n)} ${n === 1 ? noun : plural || `${noun}s`}`;
}

export function percent(x: number): string {
  if (x < 0) return `-${percent(-x)}`;
  if (x > 0 && x < 0.001) return "<0.1 %";
  if (x >= 0.995 && x < 1) return ">99 %";
  return x > 0 && x < 0.0995 ? `${fixed(100 * x, 1)} %` : `${commas(round(100 * x))} %`;
}

/** Format like Python's %g with four digits and thousands separators. */
function general(value: number): string {
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(4)))));
  if (exponent < -4 || exponent >= 4) {
    const [m, e] = value.toExponential(3).split("e");
    const mantissa = m.includes(".") ? m.replace(/0+$/, "").replace(/\.$/, "") : m;
    const n = Number(e);
    return `${mantissa}e${n < 0 ? "-" : "+"}${String(Math.abs(n)).padStart(2, "0")}`;
  }
  const text = fixed(value, Math.max(0, 3 - exponent));
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

export function quantity(value: number, unit: string): string {
  if (!Number.isFinite(value * S)) {
    const text = Number.isNaN(value)
      ? "nan"
      : value === Infinity
        ? "inf"
        : value === -Infinity
          ? "-inf"
          : value.toExponential().replace(/e\+?/, "e+");
    return `${text} ${unit}`.trimEnd();
  }
  if (unit === "seconds") return duration(value * S);
  if (unit === "bytes") return nbytes(value);
  const text = value === Math.round(value) && Math.abs(value) < 1e15 ? commas(value) : general(value);
  return unit === "count" ? `${text}×` : `${text} ${unit}`.trimEnd();
}

export function moment(us: number): string {
  if (us === 0) return NOTHING;
  if (!Number.isFinite(us)) return UNKNOWN;
  const when = new Date(Math.floor(us / S) * 1000);
  const year = when.getUTCFullYear();
  if (Number.isNaN(when.getTime()) || year < 1 || year > 9999) return `${BigInt(us)} µs since 1970`;
  return when.toISOString().replace(".000Z", "Z");
}

/** Format a time since the start of the run, as in 2:21.6. `step` is the resolution of the axis. */
export function clock(us: number, step = 100_000): string {
  const digits = step >= S ? 0 : step >= 100_000 ? 1 : step >= 10_000 ? 2 : step >= MS ? 3 : 6;
  const unit = 10 ** (6 - digits);
  const whole = Math.round(Math.abs(us) / unit) * unit;
  const hours = Math.floor(whole / HOUR);
  const minutes = Math.floor((whole % HOUR) / MIN);
  const seconds = ((whole % MIN) / S).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  const head = hours ? `${hours}:${String(minutes).padStart(2, "0")}` : String(minutes);
  return `${us < 0 && whole ? "-" : ""}${head}:${seconds}`;
}

/** Format a range of time since the start of the run, as in 0:01.2 to 0:03.4. */
export function span(from: number, to: number): string {
  const step = to - from >= 20 * S ? S : 100_000;
  const [a, b] = [clock(from, step), clock(to, step)];
  return a === b ? a : `${a} to ${b}`;
}

/** Format percentages that add up to 100, or to the percentage `of` that they share. */
export function shares(values: readonly number[], of = 100): string[] {
  const total = values.reduce((a, b) => a + b, 0);
  if (total <= 0) return values.map(() => "0 %");
  const exact = values.map((v) => (v / total) * of);
  const whole = remaindered(exact, of);
  return whole.map((w, i) => (exact[i] > 0 && exact[i] < 0.95 ? percent(exact[i] / 100) : `${w} %`));
}
