import { useMemo, useState } from "preact/hooks";
import { type Pair, rate } from "../model/transfers";
import { count, nbytes } from "../model/format";
import { useModel } from "../model/hooks";

const MOST = 40;

/** A square of senders and receivers; the fuller the colour, the more. The table below holds the same pairs. */
export function Matrix({ pairs, show }: { pairs: readonly Pair[]; show: "rate" | "bytes" }) {
  const model = useModel();
  const [at, setAt] = useState<Pair | null>(null);
  const { workers, most, cells } = useMemo(() => {
    const bytes = new Map<string, number>();
    for (const p of pairs) for (const w of [p.source, p.destination]) bytes.set(w, (bytes.get(w) ?? 0) + p.nbytes);
    const order = new Map(model.report.workers.map((w, i) => [w.worker, i]));
    const workers = [...bytes].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([w]) => w).sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
    const value = show === "rate" ? rate : (p: Pair) => p.nbytes;
    const cells = pairs.map((pair) => ({ pair, x: workers.indexOf(pair.destination), y: workers.indexOf(pair.source), value: value(pair) })).filter((c) => c.x >= 0 && c.y >= 0);
    return { workers, cells, most: cells.reduce((a, c) => Math.max(a, c.value), 0), of: bytes.size };
  }, [pairs, show]);
  const size = Math.max(10, Math.min(26, Math.floor(420 / Math.max(1, workers.length))));
  const left = 64;
  const top = 18;
  const every = size >= 13 ? 1 : Math.ceil(13 / size);
  const name = (w: string) => { const text = model.worker(w); return text.length > 9 ? `${text.slice(0, 8)}…` : text; };
  const text = (p: Pair) => `${model.worker(p.source)} to ${model.worker(p.destination)}: ${nbytes(rate(p))}/s, ${nbytes(p.nbytes)} in ${count(p.count)} transfers`;
  return (
    <div class="matrix graph" tabIndex={0} role="region" aria-label="Matrix of transfers">
      <svg width={left + Math.max(190, workers.length * size) + 2} height={top + workers.length * size + 2} role="img" aria-label={`${show === "rate" ? "Rate" : "Bytes"} between ${workers.length} workers, at most ${nbytes(most)}${show === "rate" ? "/s" : ""}`} onPointerLeave={() => setAt(null)}>
        <rect x={left} y={top} width={workers.length * size} height={workers.length * size} fill="var(--bg-sunken)" />
        {cells.map(({ pair, x, y, value }) => (
          <rect key={`${x},${y}`} x={left + x * size} y={top + y * size} width={size - 1} height={size - 1} fill="var(--act-transfer)" fill-opacity={most ? 0.08 + 0.92 * (value / most) : 0} stroke={at === pair ? "var(--brush-line)" : "none"} onPointerEnter={() => setAt(pair)} />
        ))}
        {workers.map((w, i) => i % every === 0 && <text key={w} class="faint" x={left - 6} y={top + (i + 0.5) * size + 4} text-anchor="end">{name(w)}</text>)}
        <text class="faint" x={left} y={11}>to, in the same order; rows send</text>
      </svg>
      <p class="flamestatus" style="padding:8px 0 0">{at ? text(at) : `${count(workers.length)} workers; full colour is ${nbytes(most)}${show === "rate" ? "/s" : ""}`}</p>
    </div>
  );
}
