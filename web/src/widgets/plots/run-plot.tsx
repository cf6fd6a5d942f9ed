import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { css, font } from "../../charts/theme";
import { useThemeVersion, useWidth } from "../use-canvas";
import { addPlotKeys } from "./plot";

interface Props {
  /** Describes the plot to screen readers. */
  label: string;
  /** One per run, oldest first; null if not recorded. */
  values: readonly (number | null)[];
  /** Return the text of a run below the plot. */
  describe: (index: number) => string;
  /** Return the runs to name on the axis, and their names, for a maximum number of them. */
  ticks: (max: number) => readonly (readonly [index: number, text: string])[];
  format: (value: number) => string;
  /** Steps between the values of the axis; any if undefined. */
  steps?: number[];
  /** Runs that begin a new level, with a vertical mark. */
  marks: readonly number[];
  /** Values of the levels, before, between and after the marks; empty: none. */
  levels: readonly number[];
  onOpen: (index: number) => void;
  height?: number;
}

/** Distance from a dot within which a click is meant for it, in CSS pixels: half of the smallest target. */
const REACH = 12;

/** One dot per run. Hovering or the arrow keys read a run, clicking its dot or Enter opens it. */
export function RunPlot(props: Props) {
  const { label, values, format, steps, marks, levels, height = 200 } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const theme = useThemeVersion();
  const readout = useRef<HTMLParagraphElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const drawn = useRef<uPlot | null>(null);
  const hasRoom = width >= 50;
  useEffect(() => {
    const element = box.current;
    if (!element || !hasRoom || values.length === 0) return;
    const named = (u: uPlot) => latest.current.ticks(Math.floor(u.width / 96));
    const known = values.filter((value) => value !== null);
    const isZero = Math.max(0, ...known) === 0;
    const plot = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        padding: [10, 20, 0, 0],
        cursor: { y: false, drag: { x: false, y: false, setScale: false }, points: { size: 9 } },
        scales: {
          x: { time: false, range: () => [-0.5, values.length - 0.5] },
          y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
        },
        axes: [
          {
            stroke: css("--text-3"),
            font: font(11),
            grid: { show: false },
            ticks: { stroke: css("--line-strong"), size: 4 },
            size: 26,
            splits: (u) => named(u).map(([index]) => index),
            filter: (_u, splits) => splits,
            values: (u) => named(u).map(([, text]) => text),
          },
          {
            stroke: css("--text-3"),
            font: font(11),
            grid: { stroke: css("--line-faint"), width: 1 },
            ticks: { show: false },
            size: innerWidth < 900 ? 62 : 72,
            splits: isZero ? () => [0] : undefined,
            incrs: steps,
            values: (_u, splits) => splits.map((v) => (v === 0 ? "0" : format(v))),
          },
        ],
        series: [
          {},
          {
            stroke: css("--accent"),
            paths: () => null,
            points: { show: true, size: values.length > 100 ? 5 : 7, width: 0, fill: css("--accent") },
          },
        ],
        hooks: {
          // After the dots: on a narrow page they would cover the levels.
          draw: [(u) => drawLevels(u, marks, levels, values.length)],
          setCursor: [
            (u) => {
              const at = u.cursor.idx;
              u.over.style.cursor = isNear(u) ? "pointer" : "";
              if (readout.current)
                readout.current.textContent = at === null || at === undefined ? "" : latest.current.describe(at);
            },
          ],
        },
      },
      [values.map((_, i) => i), [...values]],
      element,
    );
    const open = () => {
      const at = plot.cursor.idx;
      if (at !== null && at !== undefined) latest.current.onOpen(at);
    };
    plot.over.addEventListener("click", () => isNear(plot) && open());
    const canvas = element.querySelector("canvas");
    canvas?.setAttribute("role", "img");
    canvas?.setAttribute(
      "aria-label",
      `${label} Use the left and right arrow keys to read runs, and Enter to open one.`,
    );
    canvas?.addEventListener("keydown", (event) => event.key === "Enter" && open());
    if (canvas) addPlotKeys(plot, canvas, readout.current);
    drawn.current = plot;
    return () => {
      drawn.current = null;
      plot.destroy();
    };
  }, [hasRoom, height, theme, values, marks, levels, label]);
  // A new plot would lose the keyboard's focus: the page becomes narrower when it gets a scroll bar.
  useEffect(() => drawn.current?.setSize({ width, height }), [width, height]);
  return (
    <>
      <div class="uwrap" ref={box} style={{ minHeight: `${height}px` }} />
      <p class="flamestatus" ref={readout} aria-live="off" data-testid="readout" />
    </>
  );
}

/** Return whether the pointer is at the dot of the run below it. */
function isNear(plot: uPlot): boolean {
  const { idx, left = -1, top = -1 } = plot.cursor;
  const value = idx === null || idx === undefined ? null : plot.data[1][idx];
  if (idx === null || idx === undefined || value === null || value === undefined || left < 0) return false;
  return Math.hypot(plot.valToPos(idx, "x") - left, plot.valToPos(value, "y") - top) <= REACH;
}

/** Draw a vertical mark before each run that begins a level, and each level as a line. */
function drawLevels(u: uPlot, marks: readonly number[], levels: readonly number[], runs: number): void {
  const { ctx } = u;
  const x = (index: number) => Math.round(u.valToPos(index - 0.5, "x", true)) + 0.5;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.strokeStyle = css("--st-warn");
  for (const mark of marks) {
    ctx.beginPath();
    ctx.moveTo(x(mark), u.bbox.top);
    ctx.lineTo(x(mark), u.bbox.top + u.bbox.height);
    ctx.stroke();
  }
  ctx.strokeStyle = css("--text");
  ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  const edges = [0, ...marks, runs];
  for (const [i, level] of levels.entries()) {
    const y = Math.round(u.valToPos(level, "y", true)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(x(edges[i]), y);
    ctx.lineTo(x(edges[i + 1]), y);
    ctx.stroke();
  }
  ctx.restore();
}
