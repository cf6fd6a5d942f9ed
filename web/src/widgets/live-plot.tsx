import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { drawLivePlot, type LiveSeries } from "../charts/live-plot";
import { clock } from "../model/format";
import { Panel } from "./basics";
import { useThemeVersion, useWidth } from "./use-canvas";
import type { LiveRange } from "./use-live-range";

interface Props {
  title: string;
  series: readonly LiveSeries[];
  range: LiveRange;
  format: (value: number) => string;
  testid: string;
}

const HEIGHT = 118;

/** Lines over the shown time. The legend has the latest values, or those at the pointer. */
export function LivePlot({ title, series, range, format, testid }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemeVersion();
  const [hover, setHover] = useState<number | null>(null);
  const { t0, t1 } = range;
  useLayoutEffect(() => {
    if (canvas.current && width > 1) drawLivePlot(canvas.current, width, HEIGHT, series, t0, t1, format);
  }, [series, t0, t1, width, theme]);
  const at = hover === null ? t1 : t0 + hover * (t1 - t0);
  const texts = series.map((line) => `${line.label} ${valueAt(line, at, format)}`);
  return (
    <Panel
      title={title}
      class="c4"
      testid={testid}
      right={
        <div class="plotkey">
          {hover !== null && <span class="faint">{clock(at, 1e6)}</span>}
          {series.map((line, i) => (
            <span key={line.label}>
              <i style={{ borderTop: `2px ${line.dash ? "dashed" : "solid"} var(${line.colour})` }} />
              {texts[i]}
            </span>
          ))}
        </div>
      }
    >
      <div class="liveplot" ref={box}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${title} over time. ${texts.join(", ")}.`}
          onPointerMove={(event) => setHover(event.offsetX / Math.max(1, width))}
          onPointerLeave={() => setHover(null)}
        />
      </div>
    </Panel>
  );
}

/** Return the last value up to a time as text. */
function valueAt({ x, y }: LiveSeries, t: number, format: (value: number) => string): string {
  let last = -1;
  for (let i = 0; i < x.length && x[i] <= t; i++) last = i;
  return last < 0 ? "–" : format(y[last]);
}
