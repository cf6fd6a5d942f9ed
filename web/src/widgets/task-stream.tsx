import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { surface } from "../charts/canvas";
import { drawTicks } from "../charts/ruler";
import { drawGutter } from "../charts/stream/decorations";
import { laneHeight, layOut } from "../charts/stream/layout";
import { clock } from "../model/format";
import { useAsync, useModel, useNav } from "../model/hooks";
import { LossLabels } from "./loss-labels";
import { frameStyle, laneY, taskFrame, tooltipPosition } from "./task-frame";
import { TaskTip } from "./task-tip";
import { useBusyShares } from "./use-busy-shares";
import { useCanvas, useCrosshair, useThemeVersion, useWidth } from "./use-canvas";
import { useStreamDrawing } from "./use-stream-drawing";
import { useStreamPointer } from "./use-stream-pointer";
import { useTaskCursor } from "./use-task-cursor";

interface Props {
  maxHeight: number;
  /** Height of a lane if there are only a few. */
  maxLane: number;
  /** Show lanes at full height in a scrolling box. */
  tall?: boolean;
  /** Rank of the highlighted prefix; -1 for all. */
  focus: number;
  onTask: (task: number) => void;
  /** The task that is open beside the stream; -1 for none. */
  selected: number;
}

export function TaskStream({ maxHeight, maxLane, tall = false, focus, onTask, selected }: Props) {
  const model = useModel();
  const { selection } = useNav();
  const { report } = model;
  const [box, width] = useWidth<HTMLDivElement>();
  const [gutterBox, gutterWidth] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const backdrop = useRef<HTMLCanvasElement>(null);
  const gutter = useRef<HTMLCanvasElement>(null);
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

  useStreamDrawing(canvas, backdrop, { width, height, scroll, layout, focus });

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
  const reached = cursor.detail && taskFrame(cursor.detail, layout, selection, report.stream.tick_us, width, scroll);
  const open = useAsync(
    () => (selected >= 0 ? model.stream.detail(selected) : Promise.resolve(null)),
    [selected],
  ).value;
  const mark = open && taskFrame(open, layout, selection, report.stream.tick_us, width, scroll);
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
