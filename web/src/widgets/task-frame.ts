import type { LaneLayout } from "../charts/stream/layout";
import type { TaskDetail } from "../model/stream";
import type { Selection } from "../model/time";

interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

export const frameStyle = (frame: Frame) =>
  Object.fromEntries(Object.entries(frame).map(([name, value]) => [name, `${value}px`]));

/** Screen position of the tooltip: below the frame. */
export function tooltipPosition(canvas: HTMLCanvasElement | null, frame: Frame): { x: number; y: number } {
  const box = canvas?.getBoundingClientRect();
  return {
    x: (box?.left ?? 0) + frame.left + Math.min(frame.width, 120),
    y: (box?.top ?? 0) + frame.top + frame.height,
  };
}

/** Return the y position of a lane, -1 if it has no row. */
export function laneY(layout: LaneLayout, lane: number): number {
  const rows = layout.rows;
  for (let r = 0; r < rows.length; r += 3) if (lane >= rows[r + 1] && lane < rows[r + 1] + rows[r + 2]) return rows[r];
  return -1;
}

/** Return the frame around the bars of a task, null if they are out of view. */
export function taskFrame(
  task: TaskDetail,
  layout: LaneLayout,
  s: Selection,
  tick: number,
  width: number,
  scroll: number,
): Frame | null {
  const y = laneY(layout, task.lane);
  const x = (t: number) => Math.max(0, Math.min(width, ((t * tick - s.t0) / (s.t1 - s.t0)) * width));
  const from = x(Math.min(...task.parts.map((p) => p.start)));
  const to = x(Math.max(...task.parts.map((p) => p.stop)));
  if (y < 0 || (to <= 0 && from <= 0) || from >= width) return null;
  return { left: from - 2, width: Math.max(2, to - from) + 3, top: y - scroll - 2, height: layout.rowHeight + 3 };
}
