import { useMemo, useState } from "preact/hooks";
import { useModel } from "../../model/page/hooks";
import { counted, nbytes } from "../../model/text/format";
import { type Pair, rate } from "../../model/transfers";
import { useWidth } from "../use-canvas";
import { cutTo, matrixLayout, strength } from "./matrix-layout";

const MAX_WORKERS = 40;
const TOP = 18;

interface Cell {
  pair: Pair;
  x: number;
  y: number;
  value: number;
}

/** Return the next cell with a transfer in a direction, or the cell itself if there is none. */
function nextCell(cells: readonly Cell[], from: Cell, dx: number, dy: number): Cell {
  const ahead = (c: Cell) => (c.x - from.x) * dx + (c.y - from.y) * dy;
  return (
    cells
      .filter((c) => ahead(c) > 0 && (dx ? c.y === from.y : c.x === from.x))
      .reduce((best: Cell | null, c) => (!best || ahead(c) < ahead(best) ? c : best), null) ?? from
  );
}

/** A matrix of senders and receivers. Stronger colour means more. The table below lists the same pairs. */
export function TransferMatrix({ pairs, show }: { pairs: readonly Pair[]; show: "rate" | "bytes" }) {
  const model = useModel();
  const [at, setAt] = useState<Pair | null>(null);
  const { workers, max, cells } = useMemo(() => {
    const bytes = new Map<string, number>();
    for (const p of pairs) for (const w of [p.source, p.destination]) bytes.set(w, (bytes.get(w) ?? 0) + p.nbytes);
    const order = new Map(model.report.workers.map((w, i) => [w.worker, i]));
    const workers = [...bytes]
      .sort((a, b) => b[1] - a[1])
      .slice(0, MAX_WORKERS)
      .map(([w]) => w)
      .sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
    const value = show === "rate" ? rate : (p: Pair) => p.nbytes;
    const cells = pairs
      .map((pair) => ({
        pair,
        x: workers.indexOf(pair.destination),
        y: workers.indexOf(pair.source),
        value: value(pair),
      }))
      .filter((c) => c.x >= 0 && c.y >= 0);
    return { workers, cells, max: cells.reduce((a, c) => Math.max(a, c.value), 0), of: bytes.size };
  }, [pairs, show]);
  const [box, room] = useWidth<HTMLDivElement>();
  const names = workers.map((w) => model.shortWorker(w));
  const { left, width, height: size, isNamed } = matrixLayout(room, names);
  const shown = (v: number) => `${nbytes(v)}${show === "rate" ? "/s" : ""}`;
  const every = size >= 13 ? 1 : Math.ceil(13 / size);
  const text = (p: Pair) =>
    `${model.worker(p.source)} to ${model.worker(p.destination)}: ${nbytes(rate(p))}/s, ${nbytes(p.nbytes)} in ${counted(p.count, "transfer")}`;
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const now = cells.find((c) => c.pair === at);
    setAt((now ? nextCell(cells, now, step[0], step[1]) : cells[0])?.pair ?? null);
  };
  return (
    <div
      class="matrix graph"
      tabIndex={0}
      role="region"
      aria-label="Transfer matrix. Arrow keys move between worker pairs."
      onKeyDown={onKey}
      onBlur={() => setAt(null)}
      data-testid="matrix"
      ref={box}
    >
      <svg
        width={left + Math.max(isNamed ? 0 : 90, workers.length * width) + 2}
        height={TOP + workers.length * size + 2}
        role="img"
        aria-label={`${show === "rate" ? "Rate" : "Bytes"} between ${workers.length} workers, up to ${shown(max)}`}
        onPointerLeave={() => setAt(null)}
      >
        <rect x={left} y={TOP} width={workers.length * width} height={workers.length * size} fill="var(--bg-sunken)" />
        {cells.map(({ pair, x, y, value }) => (
          <rect
            key={`${x},${y}`}
            x={left + x * width}
            y={TOP + y * size}
            width={width - 1}
            height={size - 1}
            fill="var(--act-transfer)"
            fill-opacity={max ? strength(value / max, isNamed) : 0}
            stroke={at === pair ? "var(--brush-line)" : "none"}
            onPointerEnter={() => setAt(pair)}
          />
        ))}
        {isNamed &&
          cells.map(({ x, y, value }) => (
            <text
              key={`${x},${y}`}
              x={left + (x + 0.5) * width}
              y={TOP + (y + 0.5) * size + 4}
              text-anchor="middle"
              pointer-events="none"
            >
              {shown(value)}
            </text>
          ))}
        {workers.map(
          (w, i) =>
            i % every === 0 && (
              <text key={w} class="faint" x={left - 6} y={TOP + (i + 0.5) * size + 4} text-anchor="end">
                {cutTo(names[i], left - 8)}
              </text>
            ),
        )}
        {isNamed ? (
          workers.map((w, i) => (
            <text key={w} class="faint" x={left + (i + 0.5) * width} y={11} text-anchor="middle">
              {cutTo(names[i], width - 6)}
            </text>
          ))
        ) : (
          <text class="faint" x={left} y={11}>
            To (same order)
          </text>
        )}
      </svg>
      <p class="flamestatus" style="padding:8px 0 0;white-space:normal" aria-live="polite">
        {at
          ? text(at)
          : `Rows send, columns receive. ${counted(workers.length, "worker")}. Strongest colour: ${shown(max)}`}
      </p>
    </div>
  );
}
