import { count, nbytes } from "../model/format";
import type { LiveWorker } from "../model/live-workers";
import { BarRows } from "./bar-rows";
import { Panel } from "./basics";

const MAX_ROWS = 12;

/** Memory of each worker now, fullest first. */
export function LiveWorkerMemory({ workers }: { workers: readonly LiveWorker[] }) {
  const share = (worker: LiveWorker) => worker.memory / (worker.memory_limit || Number.POSITIVE_INFINITY);
  const sorted = [...workers].sort((a, b) => share(b) - share(a) || b.memory - a.memory);
  const rows = sorted.slice(0, MAX_ROWS).map((worker) => {
    const managed = Math.min(worker.managed, worker.memory);
    const limit = worker.memory_limit ? ` of ${nbytes(worker.memory_limit)}` : "";
    return {
      key: worker.worker,
      name: (
        <span title={worker.worker}>
          {worker.name || worker.worker}
          {worker.paused && <span class="warn"> paused</span>}
        </span>
      ),
      text: `${nbytes(worker.memory)}${limit}`,
      parts: [
        { key: "managed", value: managed, colour: "--mem-managed", title: `Results: ${nbytes(managed)}` },
        {
          key: "unmanaged",
          value: worker.memory - managed,
          colour: "--mem-unmanaged",
          title: `Unmanaged: ${nbytes(worker.memory - managed)}`,
        },
        { key: "spilled", value: worker.spilled, colour: "--act-disk", title: `Spilled: ${nbytes(worker.spilled)}` },
      ],
    };
  });
  const max = Math.max(1, ...sorted.map((worker) => Math.max(worker.memory_limit, worker.memory + worker.spilled)));
  return (
    <Panel
      title="Memory by worker"
      testid="live-worker-memory"
      foot={sorted.length > MAX_ROWS ? `${MAX_ROWS} of ${count(sorted.length)} workers, fullest first` : undefined}
    >
      {rows.length === 0 ? <p class="callout">No workers are connected.</p> : <BarRows rows={rows} max={max} />}
    </Panel>
  );
}
