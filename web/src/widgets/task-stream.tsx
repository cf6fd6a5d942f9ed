import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { surface } from "../charts/canvas";
import { drawTicks } from "../charts/ruler";
import { drawBackdrop, drawGrid, drawGutter, drawLosses, losses, palette } from "../charts/stream/chrome";
import type { TaskDetail } from "../charts/stream/engine";
import { type LaneLayout, layOut } from "../charts/stream/layout";
import { sumByTwo } from "../model/cube";
import { clock } from "../model/format";
import { useActivity, useAsync, useFromCube, useModel, useNav, useSettled } from "../model/hooks";
import { setHover } from "../model/hover";
import { select, type Selection, zoom } from "../model/time";
import { TaskTip } from "./task-tip";
import { useTaskCursor } from "./use-task-cursor";
import { useCanvas, useCrosshair, useThemeVersion, useWidth } from "./use-canvas";

interface Props {
  maxHeight: number;
  /** Lanes at full height in a box that scrolls. */
  tall?: boolean;
  /** Rank of the prefix in focus, -1 for all. */
  focus: number;
  onTask: (task: number) => void;
  /** The task that is open beside the stream, -1 for none. */
  selected: number;
}

/** Share of its threads' time that each worker was busy in the selected time. */
function useBusy(): Float64Array | null {
  const selection = useSettled();
  const model = useModel();
  return useFromCube(
    "time_by_worker",
    (cube) => {
      const idle = cube.keys.category.indexOf("idle");
      const sums = sumByTwo(cube, "worker", "category", "us", selection);
      const at = new Map(cube.keys.worker.map((w, i) => [w, i]));
      return Float64Array.from(model.report.workers, (w) => {
        const row = sums[at.get(w.worker) ?? -1];
        const all = row ? row.reduce((a, b) => a + b, 0) : 0;
        return all > 0 ? (all - (row[idle] ?? 0)) / all : Number.NaN;
      });
    },
    [selection.b0, selection.b1],
  );
}

let firstPaint = true;

export function TaskStream({ maxHeight, tall = false, focus, onTask, selected }: Props) {
  const model = useModel();
  const { selection } = useNav();
  const activity = useActivity();
  const { axis, nav, report } = model;
  const [box, width] = useWidth<HTMLDivElement>();
  const [gutterBox, gutterWidth] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const backdrop = useRef<HTMLCanvasElement>(null);
  const gutter = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState(0);
  const theme = useThemeVersion();
  const busy = useBusy();
  const narrow = width > 0 && width < 560;
  const layout = useMemo(() => layOut(report.stream.lanes, tall ? 1e9 : maxHeight, narrow ? 6 : Math.max(8, Math.min(16, Math.floor((maxHeight * 0.72) / Math.max(1, report.stream.lanes.length))))), [report, tall, maxHeight, narrow]);
  const height = Math.max(40, Math.min(layout.height + 4, tall ? Math.max(320, innerHeight - 260) : 1e9));
  const line = useCrosshair(selection.t0, selection.t1, width);
  const [tip, setTip] = useState<{ detail: TaskDetail; x: number; y: number } | null>(null);
  const busyDrawing = useRef(false);
  const again = useRef<(() => void) | null>(null);
  const [axisBox, axisCanvas] = useCanvas((c, w) => {
    const s = surface(c, w, 20);
    if (s) drawTicks(s.g, w, selection.t0, selection.t1, 16, 2);
  }, [selection]);

  useLayoutEffect(() => {
    if (!canvas.current || width < 2) return;
    const asked = performance.now();
    const draw = async () => {
      const target = canvas.current;
      if (!target) return;
      busyDrawing.current = true;
      const ratio = Math.min(devicePixelRatio || 1, 3);
      const w = Math.round(width * ratio);
      const h = Math.round(height * ratio);
      const rows = layout.rows.map((v, i) => (i % 3 === 0 ? Math.round((v - scroll) * ratio) : v));
      const tick = report.stream.tick_us;
      try {
        const pixels = await model.stream.draw({ t0: selection.t0 / tick, t1: selection.t1 / tick, width: w, height: h, rows, rowHeight: Math.max(1, Math.round(layout.rowHeight * ratio)), palette: palette(focus, activity), gap: ratio });
        if (target.width !== w || target.height !== h) Object.assign(target, { width: w, height: h });
        target.getContext("2d")?.putImageData(new ImageData(new Uint8ClampedArray(pixels), w, h), 0, 0);
        const s = backdrop.current && surface(backdrop.current, width, height);
        if (s) {
          drawGrid(s.g, width, height, selection);
          drawBackdrop(s.g, width, height, layout, model, selection, scroll);
          drawLosses(s.g, width, height, layout, model, selection, scroll);
        }
        model.stream.recycle(pixels);
        painted(asked);
      } finally {
        busyDrawing.current = false;
        const next = again.current;
        again.current = null;
        next?.();
      }
    };
    if (busyDrawing.current) again.current = () => void draw();
    else void draw();
  }, [width, height, selection, layout, scroll, theme, focus, activity]);

  useLayoutEffect(() => {
    if (gutter.current && gutterWidth > 0) drawGutter(gutter.current, gutterWidth, height, layout, model, busy, scroll);
  }, [gutterWidth, height, layout, busy, scroll, theme]);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const share = event.offsetX / Math.max(1, element.clientWidth);
      const now = nav.state.selection;
      nav.select(zoom(axis, now, Math.exp(event.deltaY * 0.004), now.t0 + share * (now.t1 - now.t0)));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [nav]);

  const timeAt = (x: number) => selection.t0 + (x / Math.max(1, width)) * (selection.t1 - selection.t0);
  const hitAt = async (x: number, y: number): Promise<number> => {
    const rows = layout.rows;
    const at = y + scroll;
    let row = -1;
    for (let r = 0; r < rows.length; r += 3) if (rows[r] <= at && at < rows[r] + layout.rowHeight) row = r;
    if (row < 0) return -1;
    const tick = report.stream.tick_us;
    const slack = (2 / width) * (selection.t1 - selection.t0);
    return model.stream.hit(rows[row + 1], rows[row + 2], timeAt(x) / tick, slack / tick);
  };
  const asked = useRef(0);
  const drag = useRef<{ x: number; moved: boolean } | null>(null);
  const onMove = (event: PointerEvent) => {
    setHover(timeAt(event.offsetX));
    const mine = ++asked.current;
    const { offsetX, offsetY, clientX, clientY } = event;
    if (drag.current && Math.abs(offsetX - drag.current.x) > 4) {
      drag.current.moved = true;
      setTip(null);
      return;
    }
    void hitAt(offsetX, offsetY).then(async (task) => {
      const detail = task >= 0 ? await model.stream.detail(task) : null;
      if (mine === asked.current) setTip(detail && { detail, x: clientX, y: clientY });
    });
  };
  const leave = () => {
    asked.current++;
    setHover(null);
    setTip(null);
  };
  const onUp = (event: PointerEvent) => {
    const d = drag.current;
    drag.current = null;
    if (!d) return;
    if (d.moved) nav.select(select(axis, timeAt(d.x), timeAt(event.offsetX)));
    else void hitAt(event.offsetX, event.offsetY).then((task) => task >= 0 && onTask(task));
  };
  const cursor = useTaskCursor(onTask);
  useEffect(() => {
    const row = cursor.detail && rowOf(layout, cursor.detail.lane);
    const view = scroller.current;
    if (row !== null && view && (row < view.scrollTop || row + layout.rowHeight > view.scrollTop + height)) view.scrollTop = row - height / 2;
  }, [cursor.detail]);
  const reached = cursor.detail && markOf(cursor.detail, layout, selection, report.stream.tick_us, width, scroll);
  const open = useAsync(() => (selected >= 0 ? model.stream.detail(selected) : Promise.resolve(null)), [selected]).value;
  const mark = open && markOf(open, layout, selection, report.stream.tick_us, width, scroll);
  const total = layout.height + 4;
  const body = (
    <div class="streambody" style={{ height: tall ? `${total}px` : undefined }}>
      <div ref={gutterBox} style={tall ? "position:sticky;top:0;align-self:start" : ""}>
        <canvas ref={gutter} aria-hidden="true" />
      </div>
      <div class="plot" ref={box} style={tall ? "position:sticky;top:0;align-self:start" : ""}>
        <canvas ref={backdrop} class="backdrop" aria-hidden="true" />
        <canvas
          ref={canvas} data-testid="stream-canvas" tabIndex={0} role="img" aria-label={`Tasks on ${report.stream.lanes.length} threads, ${clock(selection.t0)} to ${clock(selection.t1)}. Arrow keys go from task to task, Enter opens one; the table view lists the same tasks.`} style={{ height: `${height}px` }}
          onPointerDown={(e) => e.button === 0 && (drag.current = { x: e.offsetX, moved: false })} onPointerMove={onMove} onPointerUp={onUp} onPointerLeave={leave} onKeyDown={cursor.onKey} onBlur={cursor.clear}
        />
        <div class="xhair" ref={line} />
        {mark && <div class="taskmark" style={css(mark)} />}
        {reached && <div class="taskmark cursor" style={css(reached)} />}
        {losses(width, layout, model, selection).map(({ group, worker, x }) =>
          group.height >= 14 && x < width - 40 ? (
            <span class="lossmark" key={group.worker} style={{ left: `${x + 8}px`, top: `${group.y - scroll + group.height / 2 - 8}px`, maxWidth: `${width - x - 8}px` }}>
              {x < width - 240 ? `${worker.name || worker.worker} lost at ${clock(model.stopOf(worker))}: ${worker.verdict}` : "lost"}
            </span>
          ) : null,
        )}
      </div>
    </div>
  );
  return (
    <>
      <div class="streamaxis">
        <div />
        <div class="plot" ref={axisBox}>
          <canvas ref={axisCanvas} aria-hidden="true" />
        </div>
      </div>
      {tall && total > height ? (
        <div class="streamscroll" ref={scroller} style={{ height: `${height}px`, maxHeight: `${height}px` }} onScroll={(e) => setScroll(e.currentTarget.scrollTop)}>
          {body}
        </div>
      ) : (
        body
      )}
      {tip && <TaskTip detail={tip.detail} x={tip.x} y={tip.y} />}
      {!tip && cursor.detail && reached && <TaskTip detail={cursor.detail} {...corner(canvas.current, reached)} />}
      <p class="sr" aria-live="polite" data-testid="stream-live">{cursor.text}</p>
    </>
  );
}

interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

const css = (frame: Frame) => Object.fromEntries(Object.entries(frame).map(([name, value]) => [name, `${value}px`]));

/** Below the frame, on the screen. */
function corner(canvas: HTMLCanvasElement | null, frame: Frame): { x: number; y: number } {
  const box = canvas?.getBoundingClientRect();
  return { x: (box?.left ?? 0) + frame.left + Math.min(frame.width, 120), y: (box?.top ?? 0) + frame.top + frame.height };
}

/** Where the row of a lane begins, -1 where it has none. */
function rowOf(layout: LaneLayout, lane: number): number {
  const rows = layout.rows;
  for (let r = 0; r < rows.length; r += 3) if (lane >= rows[r + 1] && lane < rows[r + 1] + rows[r + 2]) return rows[r];
  return -1;
}

/** A frame around the bars of a task. */
function markOf(task: TaskDetail, layout: LaneLayout, s: Selection, tick: number, width: number, scroll: number): Frame | null {
  const y = rowOf(layout, task.lane);
  const x = (t: number) => Math.max(0, Math.min(width, ((t * tick - s.t0) / (s.t1 - s.t0)) * width));
  const from = x(Math.min(...task.parts.map((p) => p.start)));
  const to = x(Math.max(...task.parts.map((p) => p.stop)));
  if (y < 0 || (to <= 0 && from <= 0) || from >= width) return null;
  return { left: from - 2, width: Math.max(2, to - from) + 3, top: y - scroll - 2, height: layout.rowHeight + 3 };
}

/** Benchmarks and tests read these marks. */
function painted(asked: number): void {
  requestAnimationFrame(() => {
    performance.measure("daskscope-redraw", { start: asked, end: performance.now() });
    if (!firstPaint) return;
    firstPaint = false;
    performance.mark("daskscope-stream-drawn");
    document.documentElement.dataset.ready = "1";
  });
}
