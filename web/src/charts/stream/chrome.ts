import type { Model } from "../../model/model";
import { isLost } from "../../model/model";
import { percent } from "../../model/format";
import type { Selection } from "../../model/time";
import type { Category } from "../../api/schema.gen";
import { LOOK } from "../../model/stream";
import { fit, hatch, surface } from "../canvas";
import { drawTicks } from "../ruler";
import { css, font, pixelOf } from "../theme";
import type { LaneLayout } from "./layout";

const TOP = 0;

/** Everything of the task stream that is not a bar: the grid of time, and hatches where a worker was not there. */
export function drawBackdrop(g: CanvasRenderingContext2D, width: number, height: number, layout: LaneLayout, model: Model, s: Selection, scroll: number): void {
  const x = (t: number) => ((t - s.t0) / (s.t1 - s.t0)) * width;
  g.save();
  for (const group of layout.groups) {
    const y = group.y - scroll;
    if (y > height || y + group.height < 0) continue;
    const worker = model.report.workers[group.worker];
    if (!worker) continue;
    const from = x(model.since(worker.start_us));
    const to = x(model.stopOf(worker));
    if (from > 1.5) hatch(g, 0, y, Math.min(from, width), group.height - 1);
    if (to < width - 1.5) hatch(g, Math.max(0, to), y, width - Math.max(0, to), group.height - 1);
  }
  g.restore();
}

export function drawGrid(g: CanvasRenderingContext2D, width: number, height: number, s: Selection): void {
  drawTicks(g, width, s.t0, s.t1, -20, -40, height + 20);
}

/** The end of a worker that was lost, as a line. */
export function drawLosses(g: CanvasRenderingContext2D, width: number, height: number, layout: LaneLayout, model: Model, s: Selection, scroll: number): void {
  for (const { group, x } of losses(width, layout, model, s)) {
    const y = group.y - scroll;
    if (y > height || y + group.height < 0) continue;
    g.fillStyle = css("--st-lost");
    g.fillRect(Math.round(x) - 1, y - 1, 2, group.height + 1);
  }
}

export function losses(width: number, layout: LaneLayout, model: Model, s: Selection) {
  return layout.groups.flatMap((group) => {
    const worker = model.report.workers[group.worker];
    if (!worker || !isLost(worker)) return [];
    const x = ((model.stopOf(worker) - s.t0) / (s.t1 - s.t0)) * width;
    return x >= 0 && x <= width ? [{ group, worker, x }] : [];
  });
}

/** Names of workers and how busy they were. */
export function drawGutter(canvas: HTMLCanvasElement, width: number, height: number, layout: LaneLayout, model: Model, busy: Float64Array | null, scroll: number): void {
  const s = surface(canvas, width, height);
  if (!s) return;
  const { g } = s;
  g.font = font(11);
  g.textBaseline = "middle";
  const narrow = width < 60;
  let free = -99;
  for (const group of layout.groups) {
    const middle = group.y + group.height / 2 - scroll + TOP;
    if (middle < 6 || middle > height - 4 || middle - free < 13) continue;
    free = middle;
    const worker = model.report.workers[group.worker];
    const share = busy?.[group.worker];
    const right = narrow || share === undefined || Number.isNaN(share) ? "" : percent(share).replace(">99 %", "100 %");
    g.fillStyle = css("--text-3");
    g.textAlign = "right";
    if (right) g.fillText(right, width - 7, middle);
    const left = narrow ? 4 : 16;
    g.fillStyle = css("--text-2");
    g.textAlign = "left";
    g.fillText(fit(g, worker ? model.brief(worker.worker) : "", width - left - (right ? 38 : 4)), left, middle);
  }
}

/** What each activity looks like in the stream; idle time has no bar. */
const LOOKS_OF: Readonly<Record<Category, (look: number) => boolean>> = {
  cpu: (look) => look <= LOOK.rest, noncpu: (look) => look <= LOOK.rest, serialize: (look) => look === LOOK.serialize, disk: (look) => look === LOOK.disk,
  transfer: (look) => look === LOOK.transfer, failed: (look) => look === LOOK.failed, idle: () => false,
};

/** Colours of the looks; with one prefix in focus, or one activity, the others fade. */
export function palette(focus: number, activity: Category | null): Uint32Array {
  const names = [...Array.from({ length: 12 }, (_, i) => `--cat-${i + 1}`), "--cat-rest", "--act-failed", "--act-transfer", "--act-disk", "--act-serialize"];
  return Uint32Array.from(names, (name, i) => pixelOf(name, (focus < 0 || i === focus) && (!activity || LOOKS_OF[activity](i)) ? 1 : 0.15));
}
