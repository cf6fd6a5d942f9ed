import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { css, font } from "../../charts/theme";
import { useModel } from "../../model/page/hooks";
import { onHover, setHover } from "../../model/page/hover";
import { clock } from "../../model/text/format";
import { select, tickStep } from "../../model/time";
import { useThemeVersion, useWidth } from "../use-canvas";

export interface PlotSeries {
  label: string;
  values: ArrayLike<number>;
  colour: string;
  fill?: string;
  dash?: boolean;
  /** Draw steps: each value holds until the next one. */
  stepped?: boolean;
}

interface Props {
  label: string;
  /** Times in microseconds since the start. */
  x: ArrayLike<number>;
  series: readonly PlotSeries[];
  format: (value: number) => string;
  height?: number;
  binary?: boolean;
  /** Called when the reader drags over a range of time. */
  onSelect?: (from: number, to: number) => void;
}

const known = (v: number) => (Number.isNaN(v) ? null : v);

/** A plot in a report. Dragging selects time for all panels. */
export function TimePlot(props: Omit<Props, "onSelect">) {
  const { axis, nav } = useModel();
  return <Plot {...props} onSelect={(from, to) => nav.select(select(axis, from, to))} />;
}

/** Lines over time. Hovering moves the crosshair of all panels. */
export function Plot({ label, x, series, format, height = 200, binary = false, onSelect }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const theme = useThemeVersion();
  const readout = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element || width < 50 || x.length === 0) return;
    const data: uPlot.AlignedData = [Array.from(x), ...series.map((s) => Array.from(s.values, known))];
    const write = (at: number | null | undefined) => {
      const line = readout.current;
      if (!line) return;
      line.textContent =
        at === null || at === undefined
          ? ""
          : `${clock(data[0][at])}   ${series
              .map((s, i) => {
                const v = data[i + 1][at];
                return `${s.label} ${v === null || v === undefined ? "not recorded" : format(v)}`;
              })
              .join("   ")}`;
    };
    const grid = { stroke: css("--line-faint"), width: 1 };
    const plot = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        padding: [8, 0, 0, 0],
        cursor: { y: false, drag: { x: onSelect !== undefined, y: false, setScale: false }, points: { size: 5 } },
        scales: { x: { time: false }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.06 : 1] } },
        axes: [
          {
            stroke: css("--text-3"),
            font: font(11),
            grid: { show: false },
            ticks: { stroke: css("--line-strong"), size: 4 },
            size: 26,
            splits: (_u, _i, min, max) => {
              const step = tickStep(max - min, width / 90);
              const out = [];
              for (let t = Math.ceil(min / step) * step; t <= max - (max - min) * (18 / width); t += step) out.push(t);
              return out;
            },
            values: (_u, splits) => splits.map((t) => clock(t, splits.length > 1 ? splits[1] - splits[0] : 1e6)),
          },
          {
            stroke: css("--text-3"),
            font: font(11),
            grid,
            ticks: { show: false },
            size: innerWidth < 900 ? 62 : 84,
            values: (_u, splits) => splits.map((v) => format(v)),
            incrs: binary ? Array.from({ length: 60 }, (_, i) => 2 ** i) : undefined,
          },
        ],
        series: [
          {},
          ...series.map((s) => ({
            label: s.label,
            stroke: css(s.colour),
            width: 1.25,
            fill: s.fill ? css(s.fill) : undefined,
            dash: s.dash ? [3, 4] : undefined,
            paths: s.stepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
            points: { show: false },
          })),
        ],
        hooks: {
          setCursor: [
            (u) => {
              const at = u.cursor.idx;
              write(at);
              if (u.cursor.left !== undefined && u.cursor.left >= 0) setHover(u.posToVal(u.cursor.left, "x"));
            },
          ],
          setSelect: [
            (u) => {
              if (u.select.width > 4) {
                onSelect?.(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
                u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              }
            },
          ],
        },
      },
      data,
      element,
    );
    const canvas = element.querySelector("canvas");
    canvas?.setAttribute("role", "img");
    canvas?.setAttribute("aria-label", `${label}. Use the left and right arrow keys to read values.`);
    if (canvas) addPlotKeys(plot, canvas, readout.current);
    const leave = () => setHover(null);
    canvas?.addEventListener("blur", leave);
    plot.over.addEventListener("pointerleave", leave);
    const stop = onHover((t) => {
      if (t === null || plot.over.matches(":hover")) return;
      plot.setCursor({ left: plot.valToPos(t, "x"), top: 10 }, false);
    });
    return () => {
      stop();
      plot.destroy();
    };
  }, [width, height, theme, x, series, label]);
  return (
    <>
      <div class="uwrap" ref={box} style={{ minHeight: `${height}px` }} />
      <p class="flamestatus" style="white-space:pre" ref={readout} aria-live="off" data-testid="readout" />
    </>
  );
}

/** Arrow keys move between values, Home and End go to the ends. Values are announced only for keys, not for the mouse. */
export function addPlotKeys(plot: uPlot, canvas: HTMLCanvasElement, readout: HTMLElement | null): void {
  const last = plot.data[0].length - 1;
  canvas.tabIndex = 0;
  canvas.addEventListener("keydown", (event) => {
    const now = plot.cursor.idx ?? -1;
    const next = { ArrowLeft: now < 0 ? last : now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    readout?.setAttribute("aria-live", "polite");
    plot.setCursor({ left: plot.valToPos(plot.data[0][Math.max(0, Math.min(last, next))], "x"), top: 10 });
  });
  canvas.addEventListener("blur", () => {
    readout?.setAttribute("aria-live", "off");
    plot.setCursor({ left: -10, top: -10 });
  });
}
