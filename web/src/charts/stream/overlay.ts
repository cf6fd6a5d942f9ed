import { BAR_STYLE, type TaskMark } from "../../model/stream";
import type { Selection } from "../../model/time";
import { surface } from "../canvas";
import { css } from "../theme";
import type { LaneLayout } from "./layout";

/** The visible part of the stream: what stands where on the canvas. */
export interface Viewport {
  layout: LaneLayout;
  selection: Selection;
  tick: number;
  width: number;
  scroll: number;
}

export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

type Span = Pick<TaskMark, "lane" | "start" | "stop">;

/** Return the y position of a lane, -1 if it has no row. */
export function laneY(layout: LaneLayout, lane: number): number {
  const rows = layout.rows;
  for (let r = 0; r < rows.length; r += 3) if (lane >= rows[r + 1] && lane < rows[r + 1] + rows[r + 2]) return rows[r];
  return -1;
}

const xOf = (t: number, { selection: s, tick, width }: Viewport) => ((t * tick - s.t0) / (s.t1 - s.t0)) * width;

/** Return the area of a bar, cut at the edges of the canvas; null if it is out of view. */
export function frameOf(span: Span, view: Viewport): Frame | null {
  const y = laneY(view.layout, span.lane);
  const from = Math.max(0, xOf(span.start, view));
  const to = Math.min(view.width, xOf(span.stop, view));
  if (y < 0 || to < 0 || from > view.width) return null;
  return { left: from, width: Math.max(1, to - from), top: y - view.scroll, height: view.layout.rowHeight };
}

/** Draw bars in full colour above a faded stream; `joined` connects each with the next one, `prefixes` are the colours by rank. Return how many are in view. */
export function drawMarks(
  canvas: HTMLCanvasElement,
  height: number,
  view: Viewport,
  marks: readonly TaskMark[],
  joined: boolean,
  prefixes: readonly string[],
): number {
  const s = surface(canvas, view.width, height);
  if (!s) return 0;
  const { g } = s;
  let shown = 0;
  let previous: Frame | null = null;
  for (const mark of marks) {
    const frame = frameOf(mark, view);
    if (!frame) {
      previous = null;
      continue;
    }
    shown++;
    const body = frame.height >= 4 ? frame.height - Math.max(1, Math.round(frame.height / 8)) : frame.height;
    if (joined && previous) drawStep(g, previous, frame);
    g.fillStyle = css(mark.style === BAR_STYLE.failed ? "--act-failed" : (prefixes[mark.style] ?? "--cat-rest"));
    g.fillRect(frame.left, frame.top, frame.width, body);
    previous = frame;
  }
  return shown;
}

/** Draw a line from the end of a bar to the start of the next one. */
function drawStep(g: CanvasRenderingContext2D, from: Frame, to: Frame): void {
  g.strokeStyle = css("--text-2");
  g.lineWidth = 1;
  g.beginPath();
  g.moveTo(from.left + from.width, from.top + from.height / 2);
  g.lineTo(to.left, from.top + from.height / 2);
  g.lineTo(to.left, to.top + to.height / 2);
  g.stroke();
}

/** Return the path of a curve from the end of one task to the start of another. Ends out of view are at the edge. */
export function linkPath(from: Span, to: Span, view: Viewport): string {
  const y = (span: Span) => laneY(view.layout, span.lane) - view.scroll + view.layout.rowHeight / 2;
  const clamp = (x: number) => Math.round(Math.max(-2, Math.min(view.width + 2, x)) * 10) / 10;
  const [x0, x1] = [clamp(xOf(from.stop, view)), clamp(xOf(to.start, view))];
  const bend = Math.max(16, Math.abs(x1 - x0) / 2);
  return `M${x0},${y(from)} C${x0 + bend},${y(from)} ${x1 - bend},${y(to)} ${x1},${y(to)}`;
}
