import type { Usage, UsageLine } from "../api/server.gen";
import { tickStep } from "./time";

/** Below this cost per bar in dollars, thread time says more. */
const MIN_COST = 0.05;

export interface UsageBar {
  name: string;
  label: string;
  busy: number;
  idle: number;
}

export interface UsageBars {
  /** Dollars, or microseconds of thread time. */
  measure: "cost" | "thread";
  bars: UsageBar[];
  max: number;
}

const MAX_BARS = 12;
const MIN_DAYS = 14;

function threadTime(line: UsageLine): [busy: number, idle: number] {
  const all = Math.max(line.thread_seconds, line.compute_seconds);
  const busy = line.cost > 0 ? (all * line.cost_busy) / line.cost : line.compute_seconds;
  return [busy * 1e6, Math.max(0, all - busy) * 1e6];
}

/** Return the bars of a chart: the days, oldest first, or the largest lines and the sum of the others. */
export function usageBars({ items, by }: Pick<Usage, "items" | "by">): UsageBars {
  const measure = Math.max(0, ...items.map((l) => l.cost)) >= MIN_COST ? "cost" : "thread";
  const found = items.map((line): UsageBar => {
    const [busy, idle] = measure === "cost" ? [line.cost_busy, line.cost_idle] : threadTime(line);
    return { name: line.name, label: line.label, busy, idle };
  });
  const bars = by === "day" ? sinceFirst(found.sort((a, b) => a.name.localeCompare(b.name))) : largest(found);
  return { measure, bars, max: Math.max(0, ...bars.map((b) => b.busy + b.idle)) };
}

/** Leave out the days before the first one with usage, but show two weeks: a single bar says nothing. */
function sinceFirst(days: readonly UsageBar[]): UsageBar[] {
  const first = days.findIndex((day) => day.busy + day.idle > 0);
  return days.slice(Math.max(0, Math.min(first, days.length - MIN_DAYS)));
}

function largest(found: readonly UsageBar[]): UsageBar[] {
  const sorted = [...found].sort((a, b) => b.busy + b.idle - a.busy - a.idle);
  const rest = sorted.slice(MAX_BARS);
  if (rest.length < 2) return sorted;
  const sum = (key: "busy" | "idle") => rest.reduce((total, b) => total + b[key], 0);
  const others = { name: "", label: `${rest.length} others`, busy: sum("busy"), idle: sum("idle") };
  return [...sorted.slice(0, MAX_BARS), others];
}

/** Return round values of an axis from 0 to the maximum. */
export function usageTicks(measure: UsageBars["measure"], max: number, ticks = 4): number[] {
  if (max <= 0) return [0];
  // The steps of a time axis are round in dollars, too, up to half a second: 1, 2 and 5.
  const step = measure === "thread" ? tickStep(max, ticks) : tickStep(max * 1000, ticks) / 1000;
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, i) => i * step);
}
