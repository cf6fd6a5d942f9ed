import { useEffect } from "preact/hooks";
import uPlot from "uplot";
import { css, font } from "../../charts/theme";
import { useThemeVersion, useWidth } from "../use-canvas";

interface Curve {
  values: readonly number[];
  colour: string;
  dash?: boolean;
  isThin?: boolean;
}

interface Props {
  /** Describes the plot to screen readers. */
  label: string;
  /** Positive numbers, ascending, on a logarithmic axis. */
  x: readonly number[];
  curves: readonly Curve[];
  /** Whether to shade the area between the last two curves, the upper one first. */
  hasBand?: boolean;
  format: (value: number) => string;
  height?: number;
}

/** Curves over a few numbers. A table beside it has the same numbers, so that the plot itself cannot be read by keys. */
export function CurvePlot({ label, x, curves, hasBand = false, format, height = 220 }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const theme = useThemeVersion();
  useEffect(() => {
    const element = box.current;
    if (!element || width < 50 || x.length < 2) return;
    const plot = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        padding: [12, 24, 0, 0],
        cursor: { show: false },
        scales: {
          x: { time: false, distr: 3, log: 2 },
          y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.06 : 1] },
        },
        axes: [
          {
            stroke: css("--text-3"),
            font: font(11),
            grid: { show: false },
            ticks: { stroke: css("--line-strong"), size: 4 },
            size: 26,
            splits: () => [...x],
            filter: (_u, splits) => splits,
            values: (_u, splits) => splits.map(String),
          },
          {
            stroke: css("--text-3"),
            font: font(11),
            grid: { stroke: css("--line-faint"), width: 1 },
            ticks: { show: false },
            size: 72,
            values: (_u, splits) => splits.map(format),
          },
        ],
        series: [
          {},
          ...curves.map((curve) => ({
            stroke: css(curve.colour),
            width: curve.isThin ? 0.75 : 1.5,
            dash: curve.dash ? [3, 4] : undefined,
            points: { show: !curve.dash && !curve.isThin, size: 6, fill: css(curve.colour) },
          })),
        ],
        // Series 0 is x.
        bands: hasBand ? [{ series: [curves.length - 1, curves.length], fill: css("--accent-soft") }] : [],
      },
      [[...x], ...curves.map((curve) => [...curve.values])],
      element,
    );
    const canvas = element.querySelector("canvas");
    canvas?.setAttribute("role", "img");
    canvas?.setAttribute("aria-label", label);
    return () => plot.destroy();
  }, [width, height, theme, x, curves, hasBand, label]);
  return <div class="uwrap" ref={box} style={{ minHeight: `${height}px` }} />;
}
