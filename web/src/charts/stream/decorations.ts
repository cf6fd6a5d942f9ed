import type { Category } from "../../api/schema.gen";
import type { Model } from "../../model/model";
import { isLost } from "../../model/model";
import { BAR_STYLE } from "../../model/stream";
import { percent } from "../../model/text/format";
import type { Selection } from "../../model/time";
import { surface, truncate } from "../canvas";
import { drawTicks } from "../ruler";
import { css, font, pixelOf } from "../theme";
import type { LaneLayout } from "./layout";

const TOP = 0;

const PERIOD_COLOURS = { paused: "--st-warn-bg", starting: "--bg-sunken" } as const;

/** Gray the time when a worker was not connected, and tint the time when it was paused or had just joined. */
export function drawBackdrop(
  g: CanvasRenderingContext2D,
  width: number,
  height: number,
  layout: LaneLayout,
  model: Model,
  s: Selection,
  scroll: number,
): void {
  const x = (t: number) => ((t - s.t0) / (s.t1 - s.t0)) * width;
  g.save();
  const periods = Map.groupBy(model.report.worker_periods, (period) => period.worker);
  for (const group of layout.groups) {
    const y = group.y - scroll;
    if (y > height || y + group.height < 0) continue;
    const worker = model.report.workers[group.worker];
    if (!worker) continue;
    const from = x(model.since(worker.start_us));
    const to = x(model.stopOf(worker));
    for (const period of periods.get(worker.worker) ?? []) {
      const left = Math.max(0, x(model.since(period.start_us)));
      g.fillStyle = css(PERIOD_COLOURS[period.state]);
      g.fillRect(left, y, Math.min(width, x(model.since(period.stop_us))) - left, group.height - 1);
    }
    g.fillStyle = css("--act-idle");
    if (from > 1.5) g.fillRect(0, y, Math.min(from, width), group.height - 1);
    // A worker that is there until the end of what is known has not left.
    const hasLeft = model.stopOf(worker) < model.since(model.report.stop_us);
    if (hasLeft && to < width - 1.5) g.fillRect(Math.max(0, to), y, width - Math.max(0, to), group.height - 1);
  }
  g.restore();
}

export function drawGrid(g: CanvasRenderingContext2D, width: number, height: number, s: Selection): void {
  drawTicks(g, width, s.t0, s.t1, -20, -40, height + 20);
}

/** Draw a line where a worker was lost. */
export function drawLosses(
  g: CanvasRenderingContext2D,
  width: number,
  height: number,
  layout: LaneLayout,
  model: Model,
  s: Selection,
  scroll: number,
): void {
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

/** Draw worker names and their busy shares. */
export function drawGutter(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
  layout: LaneLayout,
  model: Model,
  busy: Float64Array | null,
  scroll: number,
): void {
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
    const left = narrow ? 4 : 16;
    const name = worker ? model.shortWorker(worker.worker) : "";
    const beside = width - left - (right ? 38 : 4);
    // A name without room beside the share stands above it, in lanes of two lines.
    const line = right && group.height >= 28 && g.measureText(name).width > beside ? 7 : 0;
    g.fillStyle = css("--text-3");
    g.textAlign = "right";
    if (right) g.fillText(right, width - 7, middle + line);
    g.fillStyle = css("--text-2");
    g.textAlign = "left";
    g.fillText(truncate(g, name, line ? width - left - 4 : beside), left, middle - line);
  }
}

/** Which bar styles belong to an activity. Idle time has no bar. */
const STYLES_OF: Readonly<Record<Category, (style: number) => boolean>> = {
  cpu: (style) => style <= BAR_STYLE.rest,
  noncpu: (style) => style <= BAR_STYLE.rest,
  serialize: (style) => style === BAR_STYLE.serialize,
  disk: (style) => style === BAR_STYLE.disk,
  transfer: (style) => style === BAR_STYLE.transfer,
  failed: (style) => style === BAR_STYLE.failed,
  idle: () => false,
};

/** The colours of bar styles after the prefixes. */
const OTHER_STYLES = ["--cat-rest", "--act-failed", "--act-transfer", "--act-disk", "--act-serialize"] as const;

/** Return the colour of each bar style, `prefixes` are the first. Styles outside the highlighted prefix or activity are faded; all if `faded`. */
export function palette(
  prefixes: readonly string[],
  focus = -1,
  activity: Category | null = null,
  faded = false,
): Uint32Array {
  return Uint32Array.from([...prefixes, ...OTHER_STYLES], (name, i) =>
    pixelOf(name, !faded && (focus < 0 || i === focus) && (!activity || STYLES_OF[activity](i)) ? 1 : 0.15),
  );
}
