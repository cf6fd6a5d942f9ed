import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { drawLiveNames, drawLiveStream, laneAt, layOutLive } from "../../charts/live-stream";
import { barAt, type LiveBar } from "../../model/live/live-lanes";
import type { LiveRun } from "../../model/live/live-run";
import { BAR_STYLE } from "../../model/stream";
import { clock, counted, duration } from "../../model/text/format";
import { Swatch } from "../basics";
import { useThemeVersion, useWidth } from "../use-canvas";
import type { LiveRange } from "./use-live-range";

/** Pointer movements shorter than this, in pixels, are clicks. */
const CLICK = 4;

interface Props {
  run: LiveRun;
  version: number;
  range: LiveRange;
  maxHeight: number;
  /** Called with the time that the reader drags over. */
  onSelect: (t0: number, t1: number) => void;
}

/** The colour of a prefix by its number: prefixes have colours in the order in which they appeared. */
export function liveColour(prefix: number): string {
  return prefix < BAR_STYLE.rest ? `--cat-${prefix + 1}` : "--cat-rest";
}

/** The task stream of the last seconds: one lane per thread. Dragging selects a time. */
export function LiveStream({ run, version, range, maxHeight, onSelect }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [gutter, gutterWidth] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const names = useRef<HTMLCanvasElement>(null);
  const theme = useThemeVersion();
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [tip, setTip] = useState<{ bar: LiveBar; x: number; y: number } | null>(null);
  const { t0, t1 } = range;
  const nameOf = (worker: string) => run.workers.workers.get(worker)?.name || worker;
  const layout = useMemo(() => {
    const order = new Intl.Collator("en", { numeric: true });
    const lanes = [...run.lanes.lanes].sort((a, b) => order.compare(nameOf(a.worker), nameOf(b.worker)));
    return layOutLive(lanes, maxHeight);
    // A first increment replaces the lanes.
  }, [run.lanes, run.lanes.revision, run.workers.workers.size, maxHeight]);
  useLayoutEffect(() => {
    if (!canvas.current || width < 2) return;
    drawLiveStream(canvas.current, width, layout, t0, t1, drag);
    // For benchmarks. Marks stay in memory until they are cleared.
    performance.clearMarks("daskscope-live-drawn");
    performance.mark("daskscope-live-drawn", { detail: run.tasks });
  }, [run, version, t0, t1, width, layout, theme, drag]);
  useLayoutEffect(() => {
    if (names.current && gutterWidth > 1) drawLiveNames(names.current, gutterWidth, layout, nameOf);
  }, [run, layout, gutterWidth, theme]);
  const at = (event: PointerEvent) => t0 + (event.offsetX / Math.max(1, width)) * (t1 - t0);
  const onMove = (event: PointerEvent) => {
    if (drag) return setDrag([drag[0], at(event)]);
    const lane = laneAt(layout, event.offsetY);
    const bar = lane && barAt(lane, at(event), ((t1 - t0) / Math.max(1, width)) * 4);
    setTip(bar ? { bar, x: event.clientX, y: event.clientY } : null);
  };
  const onUp = () => {
    if (drag && (Math.abs(drag[1] - drag[0]) / (t1 - t0)) * width > CLICK) onSelect(drag[0], drag[1]);
    setDrag(null);
  };
  return (
    <>
      <div class="streambody" data-testid="live-stream">
        <div ref={gutter}>
          <canvas ref={names} aria-hidden="true" />
        </div>
        <div class="plot" ref={box}>
          <canvas
            ref={canvas}
            role="img"
            aria-label={`Tasks of ${counted(run.lanes.lanes.length, "thread")}, ${clock(t0)} to ${clock(t1)}. ${counted(run.lanes.tasks, "task")}. Drag to select a time.`}
            onPointerDown={(event) => {
              event.currentTarget.setPointerCapture(event.pointerId);
              setTip(null);
              setDrag([at(event), at(event)]);
            }}
            onPointerMove={onMove}
            onPointerUp={onUp}
            onPointerLeave={() => setTip(null)}
          />
        </div>
      </div>
      {tip && <LiveTip run={run} bar={tip.bar} x={tip.x} y={tip.y} />}
    </>
  );
}

function activityOf(style: number): string {
  if (style === BAR_STYLE.transfer) return "Transfer";
  if (style === BAR_STYLE.disk) return "Disk";
  if (style === BAR_STYLE.serialize) return "Serialize";
  return style === BAR_STYLE.failed ? "Failed or lost" : "Compute";
}

function LiveTip({ run, bar, x, y }: { run: LiveRun; bar: LiveBar; x: number; y: number }) {
  const worker = run.workers.workers.get(bar.lane.worker);
  const left = Math.max(4, Math.min(x + 14, innerWidth - 260));
  return (
    <div class="tip" style={{ left: `${left}px`, top: `${y + 160 > innerHeight ? y - 150 : y + 14}px` }}>
      <h4>
        <Swatch colour={liveColour(bar.prefix)} />
        {run.prefixes[bar.prefix]}
      </h4>
      <dl>
        <dt>{activityOf(bar.style)}</dt>
        <dd>{duration(bar.length)}</dd>
        <dt>Started</dt>
        <dd>{clock(bar.start, 1000)}</dd>
        <dt>Worker</dt>
        <dd>{worker?.name || bar.lane.worker}</dd>
        {bar.key && (
          <>
            <dt>Key</dt>
            <dd class="mono">{bar.key}</dd>
          </>
        )}
      </dl>
    </div>
  );
}
