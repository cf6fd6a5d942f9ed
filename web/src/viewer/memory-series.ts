import { sumWorkers } from "../model/series";
import type { MemoryData } from "../widgets/memory/memory-rows";
import type { PlotSeries } from "../widgets/plots/plot";

/** Return the lines of the memory of all workers together. `limits` has their memory limit at each time. */
export function processSeries(
  { memory, managed, spilled }: MemoryData,
  limits: Float64Array,
  b0: number,
  b1: number,
): PlotSeries[] {
  const found: PlotSeries[] = [];
  const area = { colour: "--mem-managed" };
  if (memory)
    found.push({ ...area, label: "process memory", values: sumWorkers(memory, b0, b1), fill: "--mem-unmanaged" });
  if (managed) found.push({ ...area, label: "managed", values: sumWorkers(managed, b0, b1), fill: "--mem-managed" });
  const onDisk = spilled ? sumWorkers(spilled, b0, b1) : [];
  // Leave out a line that is zero everywhere.
  if (onDisk.some((v) => v > 0)) found.push({ label: "spilled", values: onDisk, colour: "--mem-spilled" });
  // Always, if it is known: without it, a chart of little memory looks full.
  if (limits.some((l) => l > 0))
    found.push({ label: "limit", values: limits, colour: "--text-3", dash: true, stepped: true });
  return found;
}
