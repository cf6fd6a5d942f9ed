import { surface } from "./canvas";
import { drawTicks } from "./ruler";
import { css, font } from "./theme";

/** A line over time. */
export interface LiveSeries {
  label: string;
  /** Microseconds since the origin. */
  x: readonly number[];
  y: readonly number[];
  colour: string;
  /** Fill the area below the line. */
  fill?: string;
  dash?: boolean;
  /** Each value holds until the next one, and the last one until now. */
  stepped?: boolean;
}

const LEFT = 4;
const TOP = 14;
const AXIS = 18;

/** Draw lines between two times. Returns the top of the scale. */
export function drawLivePlot(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
  series: readonly LiveSeries[],
  t0: number,
  t1: number,
  format: (value: number) => string,
): number {
  const s = surface(canvas, width, height);
  if (!s) return 0;
  const { g } = s;
  const base = height - AXIS;
  let top = 0;
  for (const { x, y } of series)
    for (let i = 0; i < x.length; i++) if (x[i] <= t1 && (x[i + 1] ?? t1) >= t0) top = Math.max(top, y[i]);
  const scale = top > 0 ? (base - TOP) / (top * 1.06) : 0;
  const px = (t: number) => LEFT + ((t - t0) / (t1 - t0)) * (width - LEFT);
  const py = (v: number) => base - v * scale;
  g.fillStyle = css("--line-faint");
  g.fillRect(0, base, width, 1);
  if (top > 0) g.fillRect(0, Math.round(py(top)), width, 1);
  g.save();
  g.beginPath();
  g.rect(0, 0, width, base);
  g.clip();
  for (const line of series) drawLine(g, line, px, py, base, t1);
  g.restore();
  drawTicks(g, width, t0, t1, base, base + 5);
  g.font = font(11);
  g.textBaseline = "alphabetic";
  g.textAlign = "left";
  g.fillStyle = css("--text-3");
  if (top > 0) g.fillText(format(top), LEFT, Math.max(10, py(top) - 3));
  return top;
}

function drawLine(
  g: CanvasRenderingContext2D,
  line: LiveSeries,
  px: (t: number) => number,
  py: (v: number) => number,
  base: number,
  t1: number,
): void {
  const { x, y } = line;
  if (x.length === 0) return;
  const path = new Path2D();
  path.moveTo(px(x[0]), py(y[0]));
  for (let i = 1; i < x.length; i++) {
    if (line.stepped) path.lineTo(px(x[i]), py(y[i - 1]));
    path.lineTo(px(x[i]), py(y[i]));
  }
  const end = line.stepped ? t1 : x[x.length - 1];
  if (line.stepped) path.lineTo(px(t1), py(y[y.length - 1]));
  if (line.fill) {
    const area = new Path2D(path);
    area.lineTo(px(end), base);
    area.lineTo(px(x[0]), base);
    g.fillStyle = css(line.fill);
    g.fill(area);
  }
  g.strokeStyle = css(line.colour);
  g.lineWidth = 1.25;
  g.setLineDash(line.dash ? [3, 4] : []);
  g.stroke(path);
  g.setLineDash([]);
}
