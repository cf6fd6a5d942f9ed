import { clock } from "../model/text/format";
import { type Axis, type Selection, tickStep } from "../model/time";
import { hatch, surface } from "./canvas";
import { css, font } from "./theme";

export const RULER_HEIGHT = 68;
const BASE = 46;

export interface RulerData {
  /** Thread time by category (in the order of CATEGORIES) and bin. */
  series: readonly Float64Array[];
  /** Maximum thread time of a bin. */
  capacity: number;
  marks: readonly { t: number; colour: string }[];
  /** Nothing is known of the time since: it is left blank. */
  knownUntil: number;
}

/** A column of the ruler: its bins, and its known time. */
interface RulerColumn {
  from: number;
  to: number;
  t0: number;
  t1: number;
}

/** Return the columns that fit into a width, as far as something is known of their time. */
export function rulerColumns(axis: Axis, width: number, knownUntil: number): RulerColumn[] {
  const count = Math.max(1, Math.min(Math.ceil(width), axis.bins));
  const end = Math.min(axis.length, knownUntil);
  return Array.from({ length: count }, (_, c) => {
    const from = Math.floor((c * axis.bins) / count);
    const to = Math.max(from + 1, Math.floor(((c + 1) * axis.bins) / count));
    return { from, to, t0: from * axis.width, t1: Math.min(end, to * axis.width) };
  }).filter(({ t0, t1 }) => t1 > t0);
}

/** Return the share of a capacity per bin that is used in the known time of a column. */
export function shareOf(values: Float64Array, { from, to, t0, t1 }: RulerColumn, axis: Axis, capacity: number): number {
  let sum = 0;
  for (let b = from; b < to; b++) sum += values[b];
  return capacity > 0 ? Math.min(1, (sum * axis.width) / (t1 - t0) / capacity) : 0;
}

const FADED = 0.2;

const COLOURS = ["--act-cpu", "--act-noncpu", "--act-serialize", "--act-disk", "--act-transfer", "--act-failed"];

/** Draw busy threads by activity over the whole run, and the selection. All categories but `only` are faded; -1 fades none. */
export function drawRuler(
  canvas: HTMLCanvasElement,
  width: number,
  data: RulerData,
  axis: Axis,
  selection: Selection,
  only: number,
): void {
  const s = surface(canvas, width, RULER_HEIGHT);
  if (!s) return;
  const { g } = s;
  const x = (t: number) => (t / axis.length) * width;
  const columns = rulerColumns(axis, width, data.knownUntil);
  const top = new Float64Array(columns.length);
  // Idle threads are hatched. Threads of workers that were not there are neither busy nor idle.
  g.save();
  g.beginPath();
  columns.forEach((column) => {
    const h = (BASE - 4) * data.series.reduce((sum, s) => sum + shareOf(s, column, axis, data.capacity), 0);
    g.rect(x(column.t0), BASE - h, x(column.t1) - x(column.t0) + 0.3, h);
  });
  g.clip();
  hatch(g, 0, 4, Math.min(width, x(data.knownUntil)), BASE - 4);
  g.restore();
  COLOURS.forEach((colour, k) => {
    g.fillStyle = css(colour);
    g.globalAlpha = only < 0 || only === k ? 1 : FADED;
    const values = data.series[k];
    if (!values) return;
    columns.forEach((column, c) => {
      const h = Math.min(BASE - 4 - top[c], shareOf(values, column, axis, data.capacity) * (BASE - 4));
      if (h <= 0) return;
      const x0 = x(column.t0);
      g.fillRect(x0, BASE - top[c] - h, Math.min(width, x(column.t1)) - x0 + 0.3, h);
      top[c] += h;
    });
  });
  g.globalAlpha = 1;
  const a = x(selection.t0);
  // A selection can end after the last bin of a run that goes on.
  const b = Math.min(width, x(selection.t1));
  if (!selection.whole) {
    g.fillStyle = css("--brush-shade");
    g.fillRect(0, 3, a, BASE - 3);
    g.fillRect(b, 3, width - b, BASE - 3);
    g.strokeStyle = css("--brush-line");
    g.lineWidth = 1.5;
    g.strokeRect(a, 3.5, Math.max(1, b - a), BASE - 3);
    for (const at of [a, b]) {
      g.fillStyle = css("--brush-line");
      g.beginPath();
      g.roundRect(Math.max(0, Math.min(width - 7, at - 3.5)), 15, 7, 20, 2.5);
      g.fill();
      g.fillStyle = css("--bg-panel");
      g.fillRect(Math.max(3, Math.min(width - 4, at - 0.5)), 20, 1, 10);
    }
  }
  drawTicks(g, width, 0, axis.length, BASE + 1, BASE + 10);
  for (const mark of data.marks) {
    const at = x(mark.t);
    g.fillStyle = css(mark.colour);
    g.beginPath();
    g.moveTo(at, BASE + 1);
    g.lineTo(at + 4, BASE + 5);
    g.lineTo(at, BASE + 9);
    g.lineTo(at - 4, BASE + 5);
    g.fill();
  }
}

/** Draw ticks and labels of a time axis. */
export function drawTicks(
  g: CanvasRenderingContext2D,
  width: number,
  t0: number,
  t1: number,
  yTick: number,
  yText: number,
  grid = 0,
): void {
  const step = tickStep(t1 - t0, width / 84);
  g.font = font(11);
  g.textBaseline = "top";
  for (let t = Math.ceil(t0 / step) * step; t <= t1; t += step) {
    const at = ((t - t0) / (t1 - t0)) * width;
    g.fillStyle = css(grid ? "--line-faint" : "--line-strong");
    g.fillRect(Math.round(at), yTick, 1, grid || 4);
    g.fillStyle = css("--text-3");
    g.textAlign = at < 14 ? "left" : at > width - 18 ? "right" : "center";
    g.fillText(clock(t, step), at, yText);
  }
}
