import { useMemo, useRef } from "preact/hooks";
import { CATEGORIES } from "../../api/schema.gen";
import { drawRuler, type RulerData } from "../../charts/ruler";
import { type CubeData, overTime, sumBy, total } from "../../model/cube";
import { isLost } from "../../model/model";
import { useActivity, useCube, useModel, useSelection, useSteadySelection } from "../../model/page/hooks";
import { setHover } from "../../model/page/hover";
import { isFailure } from "../../model/stream";
import { clock, count, duration } from "../../model/text/format";
import { pan, reaching, type Selection, select, wholeRun, zoom } from "../../model/time";
import { ActivityChip } from "../activity-panels";
import { Icon, type IconName } from "../icon";
import { useCanvas, useCrosshair } from "../use-canvas";

const LEGEND = [
  ["cpu", "CPU"],
  ["noncpu", "waiting"],
  ["transfer", "transfer"],
  ["disk", "disk"],
  ["serialize", "serialize"],
  ["failed", "lost or failed"],
  ["idle", "idle"],
] as const;

/** The legend of the ruler. Of a run that goes on, compute time is not split yet: its tasks may be waiting. */
export function legendOf(isLive: boolean): readonly (readonly [string, string])[] {
  return isLive ? [["cpu", "compute (CPU and waiting)"], ...LEGEND.slice(2)] : LEGEND;
}

type Drag = { kind: "new" | "left" | "right" | "move"; from: number; at: Selection };

/** The whole run in one strip. Drag to select time, drag the handles to adjust it, double-click to select the whole run. */
export function TimeRuler({ joined = false }: { joined?: boolean }) {
  const model = useModel();
  // As the task stream below does, it follows every move: otherwise the same time is at two places.
  const selection = useSelection();
  const activity = useActivity();
  const { nav } = model;
  const axis = reaching(model.axis, selection);
  const data = useRulerData();
  const [box, canvas, width] = useCanvas(
    (c, w) => data && drawRuler(c, w, data, axis, selection, activity ? CATEGORIES.indexOf(activity) : -1),
    [data, selection, activity],
  );
  const line = useCrosshair(0, axis.length, width);
  const drag = useRef<Drag | null>(null);

  const timeAt = (event: PointerEvent) => {
    const rect = canvas.current?.getBoundingClientRect();
    return rect
      ? Math.max(0, Math.min(axis.length, ((event.clientX - rect.left) / Math.max(1, rect.width)) * axis.length))
      : 0;
  };
  const near = (t: number, edge: number) => Math.abs(t - edge) < (8 / Math.max(1, width)) * axis.length;
  const kindAt = (t: number): Drag["kind"] => {
    if (selection.whole) return "new";
    if (near(t, selection.t0)) return "left";
    if (near(t, selection.t1)) return "right";
    return t > selection.t0 && t < selection.t1 ? "move" : "new";
  };
  const onDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const t = timeAt(event);
    drag.current = { kind: kindAt(t), from: t, at: selection };
    canvas.current?.setPointerCapture(event.pointerId);
  };
  const onMove = (event: PointerEvent) => {
    const t = timeAt(event);
    setHover(t);
    const d = drag.current;
    if (!d) {
      if (canvas.current)
        canvas.current.style.cursor = { new: "crosshair", left: "ew-resize", right: "ew-resize", move: "grab" }[
          kindAt(t)
        ];
      return;
    }
    if (Math.abs(t - d.from) < (3 / Math.max(1, width)) * axis.length) return;
    if (d.kind === "new") nav.select(select(axis, d.from, t));
    else if (d.kind === "left") nav.select(select(axis, t, d.at.t1));
    else if (d.kind === "right") nav.select(select(axis, d.at.t0, t));
    else nav.select(pan(axis, d.at, (t - d.from) / (d.at.t1 - d.at.t0)));
  };
  const onKey = (event: KeyboardEvent) => {
    const move: Record<string, () => Selection> = {
      ArrowLeft: () => pan(axis, selection, -0.1),
      ArrowRight: () => pan(axis, selection, 0.1),
      ArrowUp: () => zoom(axis, selection, 0.8),
      ArrowDown: () => zoom(axis, selection, 1.25),
    };
    const next = move[event.key];
    if (!next) return;
    event.preventDefault();
    nav.select(next());
  };
  const stepButton = (name: IconName, action: string, key: string, next: () => Selection) => {
    // The keys work only in the viewer.
    const label = nav.inUrl ? `${action} (${key})` : action;
    return (
      <button
        type="button"
        class="btn sm ghost"
        style="padding:0 5px"
        aria-label={label}
        title={label}
        onClick={() => nav.select(next())}
      >
        <Icon name={name} />
      </button>
    );
  };
  return (
    <section class={`panel rulerpanel ${joined ? "joined" : ""}`} aria-label="Time selection">
      <div class="selbar">
        <SelectionText />
        <ActivityChip />
        <span class="right">
          {legendOf(model.isLive).map(([key, text]) => (
            <span key={key} class="hide-n">
              <i class={`sw a-${key}`} />
              {text}
            </span>
          ))}
          <span style="display:flex">
            {stepButton("left", "Earlier", "A", () => pan(axis, selection, -0.25))}
            {stepButton("zoomout", "Zoom out", "S", () => zoom(axis, selection, 1.6))}
            {stepButton("zoomin", "Zoom in", "W", () => zoom(axis, selection, 0.6))}
            {stepButton("right", "Later", "D", () => pan(axis, selection, 0.25))}
            {stepButton("whole", "Whole run", "Esc", () => wholeRun(axis))}
          </span>
        </span>
      </div>
      <div class="lane-grid">
        <div class="gut" style="padding-top:3px">
          Busy
          <span class="hide-n">
            <br />
            threads
          </span>
        </div>
        <div class="plot" ref={box}>
          <canvas
            ref={canvas}
            data-testid="ruler"
            tabIndex={0}
            role="img"
            aria-label={`Busy threads over ${duration(axis.length)}; selected ${clock(selection.t0)} to ${clock(selection.t1)}. Arrow keys move and zoom the selection.`}
            style={{ height: "68px" }}
            onPointerDown={onDown}
            onPointerMove={onMove}
            onPointerUp={() => (drag.current = null)}
            onPointerLeave={() => setHover(null)}
            onDblClick={() => nav.select(wholeRun(axis))}
            onKeyDown={onKey}
          />
          <div class="xhair" ref={line} />
        </div>
      </div>
    </section>
  );
}

function useRulerData(): RulerData | null {
  const model = useModel();
  const cube = useCube("time_by_prefix");
  return useMemo(() => {
    if (!cube) return null;
    const all = overTime(cube, "category", "us", model.axis.bins);
    const series = CATEGORIES.map((name) => all[cube.keys.category.indexOf(name)] ?? new Float64Array(model.axis.bins));
    let capacity = 0;
    for (let b = 0; b < model.axis.bins; b++)
      capacity = Math.max(
        capacity,
        series.reduce((sum, s) => sum + s[b], 0),
      );
    const marks = model.report.workers.filter(isLost).map((w) => ({ t: model.stopOf(w), colour: "--st-lost" }));
    return { series, capacity, marks, knownUntil: model.knownUntil };
  }, [cube, model]);
}

/** Sums over the task runs that ended in the selected time. */
function sumsIn(cube: CubeData, selection: Selection, all: number): { tasks: number; us: number; failed: number } {
  const failed = sumBy(cube, "status", "count", selection);
  return {
    tasks: selection.whole ? all : total(cube, "count", selection),
    us: total(cube, "us", selection),
    failed: failed.reduce((sum, n, i) => (isFailure(cube.keys.status[i]) ? sum + n : sum), 0),
  };
}

function rangeText({ t0, t1, whole, isNow }: Selection, step: number): string {
  if (isNow) return `${clock(t0, 1e6)} to now`;
  return whole ? "Whole run" : `${clock(t0, step)} to ${clock(t1, step)}`;
}

/** The selection as text: range, duration and number of tasks. */
function SelectionText() {
  const model = useModel();
  const selection = useSteadySelection();
  const cube = useCube("counts");
  const inside = useMemo(
    () => (cube ? sumsIn(cube, selection, model.report.totals.tasks) : null),
    [cube, selection.b0, selection.b1, selection.whole],
  );
  const step = Math.min(100_000, Math.max(1, (selection.t1 - selection.t0) / 20));
  const coarse = !selection.whole && selection.t1 - selection.t0 < 4 * model.axis.width;
  return (
    <span data-testid="selection-text" style="display:flex;gap:12px;flex-wrap:wrap">
      <b>{rangeText(selection, step)}</b>
      <span>
        {duration(
          selection.isNow ? Math.round((selection.t1 - selection.t0) / 1e6) * 1e6 : selection.t1 - selection.t0,
        )}
      </span>
      <span>
        {count(inside?.tasks ?? model.report.totals.tasks)} of {count(model.report.totals.tasks)} task runs
      </span>
      {inside && <span class="hide-n">{duration(inside.us)} in tasks</span>}
      {inside && inside.failed > 0 && <span class="bad">{count(inside.failed)} failed or killed</span>}
      {coarse && (
        <span title="Totals are stored in bins of this duration">accurate to {duration(model.axis.width)}</span>
      )}
    </span>
  );
}
