import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { surface } from "../../charts/canvas";
import { drawTicks } from "../../charts/ruler";
import { drawGutter, losses } from "../../charts/stream/decorations";
import { type LaneLayout, laneHeight, layOut } from "../../charts/stream/layout";
import { drawMarks, type Frame, frameOf, laneY, linkPath, type Viewport } from "../../charts/stream/overlay";
import { sumByTwo } from "../../model/cube";
import { verdictText } from "../../model/model";
import { useFromCube, useModel, useNav, useSelection, useSettledSelection } from "../../model/page/hooks";
import type { TaskDetail, TaskMark } from "../../model/stream";
import { clock } from "../../model/text/format";
import { useCanvas, useCrosshair, useThemeVersion, useWidth } from "../use-canvas";
import { TaskTip } from "./task-tip";
import { useStreamDrawing } from "./use-stream-drawing";
import { useStreamPointer } from "./use-stream-pointer";
import { useTaskCursor } from "./use-task-cursor";

/** The inputs and outputs of the open task, as far as lines are drawn to them. */
export interface TaskLinks {
  inputs: readonly TaskMark[];
  outputs: readonly TaskMark[];
}

/** Tasks that stand out while all others are faded. */
export interface Highlight {
  marks: readonly TaskMark[];
  /** Whether each leads to the next one. */
  joined: boolean;
}

interface Props {
  maxHeight: number;
  /** Height of a lane if there are only a few. */
  maxLane: number;
  /** Show lanes at full height in a scrolling box. */
  tall?: boolean;
  /** Rank of the highlighted prefix; -1 for all. */
  focus: number;
  onTask: (task: number) => void;
  highlight: Highlight | null;
  /** The task that is open below the stream. */
  open: TaskDetail | null;
  links: TaskLinks | null;
}

export function TaskStream({ maxHeight, maxLane, tall = false, focus, onTask, highlight, open, links }: Props) {
  const model = useModel();
  const { selection } = useNav();
  const { report } = model;
  const [box, width] = useWidth<HTMLDivElement>();
  const [gutterBox, gutterWidth] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const backdrop = useRef<HTMLCanvasElement>(null);
  const gutter = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState(0);
  const theme = useThemeVersion();
  const busy = useBusyShares();
  const narrow = width > 0 && width < 560;
  const layout = useMemo(
    () =>
      layOut(
        report.stream.lanes,
        tall ? 1e9 : maxHeight,
        laneHeight(report.stream.lanes, maxHeight, narrow ? 6 : 8, narrow ? Math.min(maxLane, 24) : maxLane),
      ),
    [report, tall, maxHeight, maxLane, narrow],
  );
  const height = Math.max(40, Math.min(layout.height + 4, tall ? Math.max(320, innerHeight - 260) : 1e9));
  const line = useCrosshair(selection.t0, selection.t1, width);
  const [axisBox, axisCanvas] = useCanvas(
    (c, w) => {
      const s = surface(c, w, 20);
      if (s) drawTicks(s.g, w, selection.t0, selection.t1, 16, 2);
    },
    [selection],
  );

  const view: Viewport = { layout, selection, tick: report.stream.tick_us, width, scroll };
  useStreamDrawing(canvas, backdrop, { width, height, scroll, layout, focus, faded: highlight !== null });
  useLayoutEffect(() => {
    if (!overlay.current || width < 2) return;
    // Without marks the canvas takes no memory: a page that follows a run draws 20 times a second.
    if (!highlight) overlay.current.width = 0;
    const shown = highlight
      ? drawMarks(overlay.current, height, view, highlight.marks, highlight.joined, model.rankColours)
      : 0;
    overlay.current.dataset.shown = String(shown);
  }, [width, height, selection, layout, scroll, theme, highlight]);

  useLayoutEffect(() => {
    if (gutter.current && gutterWidth > 0) drawGutter(gutter.current, gutterWidth, height, layout, model, busy, scroll);
  }, [gutterWidth, height, layout, busy, scroll, theme]);

  const { tip, onDown, onMove, onUp, onLeave } = useStreamPointer(canvas, { width, scroll, layout }, onTask);
  const cursor = useTaskCursor(onTask);
  useEffect(() => {
    const row = cursor.detail && laneY(layout, cursor.detail.lane);
    const view = scroller.current;
    if (row !== null && view && (row < view.scrollTop || row + layout.rowHeight > view.scrollTop + height))
      view.scrollTop = row - height / 2;
  }, [cursor.detail]);
  const reached = cursor.detail && taskFrame(cursor.detail, view);
  const mark = open && taskFrame(open, view);
  const total = layout.height + 4;
  const body = (
    <div class="streambody" style={{ height: tall ? `${total}px` : undefined }}>
      <div ref={gutterBox} style={tall ? "position:sticky;top:0;align-self:start" : ""}>
        <canvas ref={gutter} aria-hidden="true" />
      </div>
      <div class="plot" ref={box} style={tall ? "position:sticky;top:0;align-self:start" : ""}>
        <canvas ref={backdrop} class="backdrop" aria-hidden="true" />
        <canvas
          ref={canvas}
          data-testid="stream-canvas"
          tabIndex={0}
          role="img"
          aria-label={`Tasks on ${report.stream.lanes.length} threads, ${clock(selection.t0)} to ${clock(selection.t1)}. Arrow keys move between tasks, Enter opens a task. The table view lists the same tasks.`}
          style={{ height: `${height}px` }}
          onPointerDown={onDown}
          onPointerMove={onMove}
          onPointerUp={onUp}
          onPointerLeave={onLeave}
          onKeyDown={cursor.onKey}
          onBlur={cursor.clear}
        />
        <canvas ref={overlay} class="backdrop" data-testid="stream-highlight" aria-hidden="true" />
        {open && links && <Links open={open} links={links} view={view} />}
        <div class="xhair" ref={line} />
        {mark && <div class="taskmark" style={frameStyle(mark)} />}
        {reached && <div class="taskmark cursor" style={frameStyle(reached)} />}
        <LossLabels layout={layout} width={width} scroll={scroll} />
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
        <div
          class="streamscroll"
          ref={scroller}
          style={{ height: `${height}px`, maxHeight: `${height}px` }}
          onScroll={(e) => setScroll(e.currentTarget.scrollTop)}
        >
          {body}
        </div>
      ) : (
        body
      )}
      {tip && <TaskTip detail={tip.detail} x={tip.x} y={tip.y} />}
      {!tip && cursor.detail && reached && (
        <TaskTip detail={cursor.detail} {...tooltipPosition(canvas.current, reached)} />
      )}
      <p class="sr" aria-live="polite" data-testid="stream-live">
        {cursor.text}
      </p>
    </>
  );
}

/** Return the busy share of each worker in the selected time. */
function useBusyShares(): Float64Array | null {
  const selection = useSettledSelection();
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

/** Labels of the workers that were lost in the selected time. */
function LossLabels({ layout, width, scroll }: { layout: LaneLayout; width: number; scroll: number }) {
  const model = useModel();
  const selection = useSelection();
  return (
    <>
      {losses(width, layout, model, selection).map(({ group, worker, x }) =>
        group.height >= 14 && x < width - 40 ? (
          <span
            class="lossmark"
            key={group.worker}
            style={{
              left: `${x + 8}px`,
              top: `${group.y - scroll + group.height / 2 - 8}px`,
              maxWidth: `${width - x - 8}px`,
            }}
          >
            {x < width - 240
              ? `${model.called(worker.worker)} ${verdictText(worker)} at ${clock(model.stopOf(worker))}`
              : "lost"}
          </span>
        ) : null,
      )}
    </>
  );
}

const PAD = 2;

/** The position of a frame around a bar. */
const frameStyle = ({ left, top, width, height }: Frame) => ({
  left: `${left - PAD}px`,
  top: `${top - PAD}px`,
  width: `${Math.max(2, width) + PAD + 1}px`,
  height: `${height + PAD + 1}px`,
});

/** Screen position of the tooltip: below the frame. */
function tooltipPosition(canvas: HTMLCanvasElement | null, frame: Frame): { x: number; y: number } {
  const box = canvas?.getBoundingClientRect();
  return {
    x: (box?.left ?? 0) + frame.left + Math.min(frame.width, 120),
    y: (box?.top ?? 0) + frame.top + frame.height,
  };
}

/** Return the frame around all bars of a task, null if they are out of view. */
function taskFrame(task: TaskDetail, view: Viewport): Frame | null {
  const start = Math.min(...task.parts.map((p) => p.start));
  const stop = Math.max(...task.parts.map((p) => p.stop));
  return frameOf({ lane: task.lane, start, stop }, view);
}

/** Lines from the inputs of the open task, and to its outputs. */
function Links({ open, links, view }: { open: TaskDetail; links: TaskLinks; view: Viewport }) {
  const line = (kind: "input" | "output", from: Span, to: Span, key: number) => (
    <path key={`${kind}${key}`} class={kind} data-testid={`link-${kind}`} d={linkPath(from, to, view)} />
  );
  return (
    <svg class="streamlinks" aria-hidden="true">
      {links.inputs.map((mark) => line("input", mark, open, mark.task))}
      {links.outputs.map((mark) => line("output", open, mark, mark.task))}
    </svg>
  );
}

type Span = Pick<TaskMark, "lane" | "start" | "stop">;
