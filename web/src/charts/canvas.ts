import { css } from "./theme";

export interface Surface {
  g: CanvasRenderingContext2D;
  width: number;
  height: number;
  ratio: number;
}

/** Resize a canvas to CSS pixels at the resolution of the screen, and clear it. */
export function surface(canvas: HTMLCanvasElement, width: number, height: number): Surface | null {
  const ratio = Math.min(devicePixelRatio || 1, 3);
  const w = Math.max(1, Math.round(width * ratio));
  const h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  canvas.style.height = `${height}px`;
  const g = canvas.getContext("2d");
  if (!g) return null;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return { g, width, height, ratio };
}

/** Fill a rectangle with diagonal lines, which mean "idle". */
export function hatch(g: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
  if (w <= 0 || h <= 0) return;
  g.save();
  g.fillStyle = css("--act-idle");
  g.fillRect(x, y, w, h);
  g.beginPath();
  g.rect(x, y, w, h);
  g.clip();
  g.strokeStyle = css("--act-idle-hatch");
  g.lineWidth = 1;
  g.beginPath();
  for (let i = -h - (x % 6); i < w; i += 6) {
    g.moveTo(x + i, y + h);
    g.lineTo(x + i + h, y);
  }
  g.stroke();
  g.restore();
}

/** Truncate a text with an ellipsis so that it fits. */
export function truncate(g: CanvasRenderingContext2D, text: string, width: number): string {
  if (g.measureText(text).width <= width) return text;
  let lo = 0;
  let hi = Math.min(text.length, Math.ceil(width / 3));
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (g.measureText(`${text.slice(0, mid)}…`).width <= width) lo = mid;
    else hi = mid - 1;
  }
  return lo > 0 ? `${text.slice(0, lo)}…` : "";
}
