import type { ReportTable } from "../api/schema.gen";
import type { Model } from "./model";

export interface Version {
  name: string;
  scheduler: string;
  /** Distinct versions of the workers. */
  workers: string[];
}

export interface Setting {
  name: string;
  value: string;
}

export interface Environment {
  versions: Version[];
  config: Setting[];
}

type Texts = Readonly<Record<string, unknown>>;

/** Return a column of a table; each line of its data is a column as JSON. */
function columnOf(table: ReportTable | undefined, lines: readonly string[], name: string): unknown[] {
  const at = table?.columns.findIndex((c) => c.name === name) ?? -1;
  return at >= 0 && lines[at] ? (JSON.parse(lines[at]) as unknown[]) : [];
}

/** Return a cell of JSON as an object; empty if it was cut or is not recorded. */
function objectOf(cell: unknown): Texts {
  if (typeof cell !== "string") return {};
  try {
    const value: unknown = JSON.parse(cell);
    return typeof value === "object" && value !== null ? (value as Texts) : {};
  } catch {
    return {};
  }
}

const show = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value ?? null));

/** Merge the versions of the scheduler and the workers by package. Packages that are not installed are left out. */
export function mergeVersions(scheduler: Texts, workers: readonly Texts[]): Version[] {
  const names = new Set([scheduler, ...workers].flatMap((versions) => Object.keys(versions)));
  const known = (value: unknown) => value !== null && value !== undefined;
  return [...names].sort().flatMap((name) => {
    const found = [
      ...new Set(
        workers
          .map((w) => w[name])
          .filter(known)
          .map(show),
      ),
    ].sort();
    const own = known(scheduler[name]) ? show(scheduler[name]) : "";
    return own || found.length > 0 ? [{ name, scheduler: own, workers: found }] : [];
  });
}

/** Return whether the scheduler and the workers have different versions. */
export function differs({ scheduler, workers }: Version): boolean {
  return new Set([...workers, ...(scheduler ? [scheduler] : [])]).size > 1;
}

export async function loadEnvironment({ report, columns }: Pick<Model, "report" | "columns">): Promise<Environment> {
  const tableOf = (name: string) => report.tables.find((t) => t.name === name);
  const [clusters, workers] = [tableOf("clusters"), tableOf("workers")];
  const linesOf = (table?: ReportTable) => (table ? columns.lines(table.data) : Promise.resolve([]));
  const [clusterLines, workerLines] = await Promise.all([linesOf(clusters), linesOf(workers)]);
  const config = objectOf(columnOf(clusters, clusterLines, "config")[0]);
  return {
    versions: mergeVersions(
      objectOf(columnOf(clusters, clusterLines, "versions")[0]),
      columnOf(workers, workerLines, "versions").map(objectOf),
    ),
    config: Object.entries(config)
      .map(([name, value]) => ({ name, value: show(value) }))
      .sort((a, b) => a.name.localeCompare(b.name)),
  };
}
