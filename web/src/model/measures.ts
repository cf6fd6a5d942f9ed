import { count, duration, nbytes, percent } from "./text/format";

const NAMES: Record<string, string> = {
  process: "Process memory",
  managed: "Managed",
  managed_total: "Managed and spilled",
  optimistic: "Managed and old unmanaged",
  unmanaged: "Unmanaged",
  unmanaged_old: "Unmanaged, old",
  unmanaged_recent: "Unmanaged, recent",
  spilled: "Spilled to disk",
  cpu_percent: "CPU",
  net_read_bps: "Network in",
  net_write_bps: "Network out",
  disk_read_bps: "Disk read",
  disk_write_bps: "Disk write",
  executing: "Executing tasks",
  ready: "Ready tasks",
  processing: "Assigned tasks",
  stored: "Results held",
  loop_lag_us: "Event loop interval",
  gil_contention: "GIL contention",
  fds: "Open files",
  occupancy_us: "Estimated work",
};

/** Measures in bytes. "processing" is a number of tasks. */
export const BYTES = /^process$|memory|managed|spilled|optimistic|bytes|_bps$/;

export function measureName(measure: string): string {
  return NAMES[measure] ?? measure.replaceAll("_", " ");
}

/** Format a value of a measure with its unit. */
export function measureText(measure: string, value: number): string {
  if (measure.endsWith("_us")) return duration(value);
  if (measure.endsWith("_bps")) return `${nbytes(value)}/s`;
  if (measure.endsWith("_percent")) return `${count(Math.round(value))} %`;
  if (measure.includes("contention")) return percent(value);
  if (BYTES.test(measure)) return nbytes(value);
  return count(Math.round(value));
}
