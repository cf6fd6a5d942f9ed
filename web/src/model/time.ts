import type { BinRange } from "./cube";

/** The time axis of a report in microseconds since its start. */
export interface Axis {
  length: number;
  width: number;
  bins: number;
}

/** A range of time and the bins that cover it. */
export interface Selection extends BinRange {
  t0: number;
  t1: number;
  whole: boolean;
  /** Whether it ends now and moves with the run, which goes on. */
  isNow?: boolean;
}

/** Selections of at least this many bins snap to bins, so that sums are exact. */
const SNAP_FROM = 4;

export function wholeRun(axis: Axis): Selection {
  return { t0: 0, t1: axis.length, b0: 0, b1: axis.bins, whole: true };
}

/** Return the last part of a run that goes on; all of it for a length of 0. It does not snap to bins, so that it moves evenly. */
export function untilNow(axis: Axis, now: number, length: number): Selection {
  const t0 = length > 0 ? Math.max(0, now - length) : 0;
  const b0 = Math.min(axis.bins - 1, Math.round(t0 / axis.width));
  return { t0, t1: now, b0, b1: axis.bins, whole: t0 === 0, isNow: true };
}

/** Return the axis, longer if a selection that follows its run ends after it. */
export function reaching(axis: Axis, { t1 }: Selection): Axis {
  return t1 > axis.length ? { ...axis, length: t1 } : axis;
}

export function select(axis: Axis, from: number, to: number): Selection {
  let t0 = Math.max(0, Math.min(from, to));
  let t1 = Math.min(axis.length, Math.max(from, to));
  if (!(t1 - t0 > 0)) return wholeRun(axis);
  let b0 = Math.min(axis.bins - 1, Math.floor(t0 / axis.width + 1e-9));
  let b1 = Math.ceil(t1 / axis.width - 1e-9);
  if (t1 - t0 >= SNAP_FROM * axis.width) {
    b0 = Math.round(t0 / axis.width);
    b1 = Math.min(axis.bins, Math.round(t1 / axis.width));
    if (t1 >= axis.length) b1 = axis.bins;
    t0 = b0 * axis.width;
    t1 = Math.min(axis.length, b1 * axis.width);
  }
  const whole = t0 <= 0 && t1 >= axis.length;
  return { t0, t1, b0, b1: Math.max(b1, b0 + 1), whole };
}

/** Zoom by a factor (below 1: zoom in) around `at`, within the run and not below 20 µs. */
export function zoom(axis: Axis, now: Selection, factor: number, at = (now.t0 + now.t1) / 2): Selection {
  const length = Math.min(axis.length, Math.max(20, (now.t1 - now.t0) * factor));
  const share = (at - now.t0) / (now.t1 - now.t0);
  const t0 = Math.max(0, Math.min(axis.length - length, at - share * length));
  return select(axis, t0, t0 + length);
}

export function pan(axis: Axis, now: Selection, share: number): Selection {
  const length = now.t1 - now.t0;
  const t0 = Math.max(0, Math.min(axis.length - length, now.t0 + share * length));
  return select(axis, t0, t0 + length);
}

/** Return a round step (1, 2, 5, or parts of minutes and hours) so that about `ticks` labels fit. */
export function tickStep(length: number, ticks: number): number {
  const want = length / Math.max(1, ticks);
  const steps = [
    1e6, 2e6, 5e6, 10e6, 15e6, 30e6, 60e6, 120e6, 300e6, 600e6, 900e6, 1800e6, 3600e6, 7200e6, 14400e6, 43200e6,
    86400e6,
  ];
  if (want > 0.5e6) return steps.find((s) => s >= want) ?? 86400e6 * Math.ceil(want / 86400e6);
  const power = 10 ** Math.floor(Math.log10(Math.max(want, 1)));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= want) ?? 10 * power;
}
