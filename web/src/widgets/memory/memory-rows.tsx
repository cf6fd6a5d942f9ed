import { useMemo } from "preact/hooks";
import type { Worker } from "../../api/schema.gen";
import { isLost, type Model } from "../../model/model";
import { useAsync, useModel, useSettledSelection } from "../../model/page/hooks";
import { peak, rowOf, type SeriesData } from "../../model/series";
import { nbytes } from "../../model/text/format";
import type { Selection } from "../../model/time";
import { Loading } from "../basics";

const W = 300;
const H = 22;
/** Up to this many workers get taller rows. */
const ROOMY = 4;

export interface MemoryData {
  memory: SeriesData | null;
  managed: SeriesData | null;
  spilled: SeriesData | null;
}

export function useMemory(): MemoryData | null {
  const model = useModel();
  return useAsync(async () => {
    const [memory, managed, spilled] = await Promise.all(
      ["process", "managed", "spilled"].map((name) => model.series(name)),
    );
    return { memory, managed, spilled };
  }, [model]).value;
}

/** SVG path over the bins that have samples, with gaps where there are none. */
function area(values: ArrayLike<number>, b0: number, b1: number, limit: number, closed: boolean): string {
  const n = b1 - b0;
  const step = Math.max(1, Math.floor(n / 150));
  const parts: string[] = [];
  let open = -1;
  let lastX = 0;
  const x = (i: number) => (n > 1 ? (i / (n - 1)) * W : 0);
  for (let i = 0; i < n; i += step) {
    let v = Number.NaN;
    for (let k = i; k < Math.min(n, i + step); k++)
      if (!Number.isNaN(values[b0 + k]) && !(values[b0 + k] <= v)) v = values[b0 + k];
    if (Number.isNaN(v)) {
      if (open >= 0 && closed) parts.push(`L${lastX.toFixed(1)} ${H}L${x(open).toFixed(1)} ${H}Z`);
      open = -1;
      continue;
    }
    const y = H - Math.min(1, v / limit) * (H - 2);
    lastX = x(i);
    parts.push(`${open < 0 ? "M" : "L"}${lastX.toFixed(1)} ${y.toFixed(1)}`);
    if (open < 0) open = i;
  }
  if (open >= 0 && closed) parts.push(`L${lastX.toFixed(1)} ${H}L${x(open).toFixed(1)} ${H}Z`);
  return parts.join("");
}

/** One row per worker with memory, limit, spill and peak. All rows share one scale. */
export function MemoryRows({ max = 1e9 }: { max?: number }) {
  const model = useModel();
  const selection = useSettledSelection();
  const data = useMemory();
  const rows = useMemo(() => {
    if (!data?.memory) return [];
    const { memory, managed, spilled } = data;
    const byAddress = new Map(model.report.workers.map((w) => [w.worker, w]));
    const periods = new Map<string, Worker[]>();
    for (const w of model.report.workers) periods.set(w.worker, [...(periods.get(w.worker) ?? []), w]);
    const limits = model.report.workers.map((w) => w.memory_limit).filter((l) => l > 0);
    let limit = limits.length ? Math.max(...limits) : 0;
    const { b0, b1 } = selection;
    const all = memory.workers.flatMap((address, i) => {
      const top = peak(memory, i, b0, b1);
      if (!limits.length && top > limit) limit = top;
      return Number.isNaN(top) ? [] : [{ address, i, top }];
    });
    // Of a live run with very many workers, only the fullest have a series.
    const of = all.length >= max ? Math.max(all.length, model.connectedIn(selection.t0, selection.t1)) : all.length;
    const least = all.length > max ? [...all].sort((a, b) => b.top - a.top)[max - 1].top : 0;
    return all
      .filter((x) => x.top >= least)
      .slice(0, max)
      .sort((a, b) => model.compareWorkers(a.address, b.address))
      .map(({ address, i, top }) => {
        const worker = byAddress.get(address);
        const stop = worker ? model.stopOf(worker) : model.axis.length;
        const lost = worker && isLost(worker) && stop >= selection.t0 && stop <= selection.t1;
        const most = selection.whole ? Math.max(model.peakMemory(address), top) : top;
        return {
          address,
          name: model.worker(address),
          brief: model.shortWorker(address),
          top: most,
          peak: most > top && worker ? peakMark(model, worker, most / limit) : "",
          limit: limitLine(model, periods.get(address) ?? [], selection),
          of,
          end: lost ? ((stop - selection.t0) / (selection.t1 - selection.t0)) * W : -1,
          endText: lost ? ", lost" : "",
          memory: area(rowOf(memory, i), b0, b1, limit, true),
          line: area(rowOf(memory, i), b0, b1, limit, false),
          managed: managed ? area(rowOf(managed, i), b0, b1, limit, true) : "",
          spill: spilled ? spillMarks(rowOf(spilled, i), b0, b1) : "",
        };
      });
  }, [data, selection.b0, selection.b1, max]);
  if (!data) return <Loading />;
  if (rows.length === 0) return <p class="callout">No memory samples in the selected time.</p>;
  // Of a run that goes on, only the samples are known.
  const what = selection.whole && !model.isLive ? "peak" : "highest";
  return (
    <div class={rows.length <= ROOMY ? "roomy" : ""} style="padding-bottom:8px">
      {rows.map((r) => (
        <div class="mem" key={r.address}>
          <span class="n" title={`${r.name} ${r.address}`}>
            {r.brief}
          </span>
          <svg
            viewBox={`0 0 ${W} ${H}`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`Memory of ${r.name}, ${what} ${nbytes(r.top)}`}
          >
            <path d={r.limit} stroke="var(--line-strong)" stroke-dasharray="2 3" vector-effect="non-scaling-stroke" />
            <path d={r.memory} fill="var(--mem-unmanaged)" />
            <path d={r.managed} fill="var(--mem-managed)" />
            <path
              d={r.line}
              fill="none"
              stroke="var(--mem-managed)"
              stroke-width="1"
              vector-effect="non-scaling-stroke"
            />
            <path
              d={r.peak}
              data-testid="peak-mark"
              stroke="var(--text-2)"
              stroke-width="1.5"
              vector-effect="non-scaling-stroke"
            />
            <path d={r.spill} stroke="var(--mem-spilled)" stroke-width="3" vector-effect="non-scaling-stroke" />
            {r.end >= 0 && (
              <path
                d={`M${r.end.toFixed(1)} 0V${H}`}
                stroke="var(--st-lost)"
                stroke-width="2"
                vector-effect="non-scaling-stroke"
              />
            )}
          </svg>
          <span class="v" style={r.endText ? { color: "var(--st-lost)" } : {}}>
            <data data-quantity={selection.whole ? model.workerQuantity("peak-memory", r.address) : undefined}>
              {nbytes(r.top)}
            </data>{" "}
            <em style={r.endText ? { color: "inherit" } : {}}>
              {what}
              {r.endText}
            </em>
          </span>
        </div>
      ))}
      {rows[0].of > rows.length && (
        <p class="callout">
          {rows.length} of {rows[0].of} workers with the highest peaks
        </p>
      )}
    </div>
  );
}

/** SVG path of the limit, while a worker had the address. */
function limitLine(model: Model, periods: readonly Worker[], { t0, t1 }: Selection): string {
  const x = (us: number) => (Math.min(1, Math.max(0, (us - t0) / Math.max(1, t1 - t0))) * W).toFixed(1);
  return periods.map((w) => `M${x(model.since(w.start_us))} 1.500H${x(model.stopOf(w))}`).join("");
}

/** SVG path at the height of a peak between two samples: only the kernel saw it, and it does not know when. */
function peakMark(model: Model, worker: Worker, share: number): string {
  const x = (us: number) => Math.min(W, Math.max(0, (us / model.axis.length) * W)).toFixed(1);
  const y = (H - Math.min(1, share) * (H - 2)).toFixed(1);
  return `M${x(model.since(worker.start_us))} ${y}H${x(model.stopOf(worker))}`;
}

/** SVG path that marks the bins with spilled data. */
function spillMarks(values: ArrayLike<number>, b0: number, b1: number): string {
  const parts: string[] = [];
  const step = W / Math.max(1, b1 - b0);
  let from = -1;
  for (let b = b0; b <= b1; b++) {
    const on = b < b1 && values[b] > 0;
    if (on && from < 0) from = b;
    if (!on && from >= 0) {
      parts.push(`M${((from - b0) * step).toFixed(1)} ${H - 1.5}H${((b - b0) * step).toFixed(1)}`);
      from = -1;
    }
  }
  return parts.join("");
}
