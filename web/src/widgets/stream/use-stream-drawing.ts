import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { surface } from "../../charts/canvas";
import { drawBackdrop, drawGrid, drawLosses, palette } from "../../charts/stream/decorations";
import type { LaneLayout } from "../../charts/stream/layout";
import { useActivity, useModel, useSelection } from "../../model/page/hooks";
import { useThemeVersion } from "../use-canvas";

interface StreamSize {
  width: number;
  height: number;
  scroll: number;
  layout: LaneLayout;
  /** Rank of the highlighted prefix; -1 for all. */
  focus: number;
  /** Whether all bars are faded. */
  faded: boolean;
}

let firstPaint = true;

/** Draw the bars and their backdrop. While a drawing is in progress, only the latest request waits for it. */
export function useStreamDrawing(
  canvas: RefObject<HTMLCanvasElement | null>,
  backdrop: RefObject<HTMLCanvasElement | null>,
  { width, height, scroll, layout, focus, faded }: StreamSize,
): void {
  const model = useModel();
  const selection = useSelection();
  const activity = useActivity();
  const theme = useThemeVersion();
  const drawing = useRef(false);
  const next = useRef<(() => void) | null>(null);
  useLayoutEffect(() => {
    if (!canvas.current || width < 2) return;
    const requested = performance.now();
    const draw = async () => {
      const target = canvas.current;
      if (!target) return;
      drawing.current = true;
      const ratio = Math.min(devicePixelRatio || 1, 3);
      const w = Math.round(width * ratio);
      const h = Math.round(height * ratio);
      const rows = layout.rows.map((v, i) => (i % 3 === 0 ? Math.round((v - scroll) * ratio) : v));
      const tick = model.report.stream.tick_us;
      try {
        const pixels = await model.stream.draw({
          t0: selection.t0 / tick,
          t1: selection.t1 / tick,
          width: w,
          height: h,
          rows,
          rowHeight: Math.max(1, Math.round(layout.rowHeight * ratio)),
          palette: palette(model.rankColours, focus, activity, faded),
          gap: ratio,
        });
        if (target.width !== w || target.height !== h) Object.assign(target, { width: w, height: h });
        target.getContext("2d")?.putImageData(new ImageData(new Uint8ClampedArray(pixels), w, h), 0, 0);
        const s = backdrop.current && surface(backdrop.current, width, height);
        if (s) {
          drawGrid(s.g, width, height, selection);
          drawBackdrop(s.g, width, height, layout, model, selection, scroll);
          drawLosses(s.g, width, height, layout, model, selection, scroll);
        }
        model.stream.recycle(pixels);
        markPainted(requested);
      } finally {
        drawing.current = false;
        const redraw = next.current;
        next.current = null;
        redraw?.();
      }
    };
    if (drawing.current) next.current = () => void draw();
    else void draw();
  }, [width, height, selection, layout, scroll, theme, focus, faded, activity, model]);
}

/** Set the performance marks that benchmarks and tests read. */
function markPainted(requested: number): void {
  requestAnimationFrame(() => {
    performance.measure("daskscope-redraw", { start: requested, end: performance.now() });
    if (!firstPaint) return;
    firstPaint = false;
    performance.mark("daskscope-stream-drawn");
    document.documentElement.dataset.ready = "1";
  });
}
