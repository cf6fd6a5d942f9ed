import { useMemo } from "preact/hooks";
import type { Category } from "../api/schema.gen";
import { ACTIVITY_NAMES, capital } from "../model/activity";
import { type CubeData, overTime, sumBy } from "../model/cube";
import { useActivity, useCube, useModel, useSettledSelection } from "../model/page/hooks";
import { count, counted, duration, percent } from "../model/text/format";
import { type BarRow, BarRows } from "./bars/bar-rows";
import { Loading, Panel } from "./basics";
import { Icon } from "./icon";
import { Plot } from "./plots/plot";
import { PrefixName } from "./table/prefix-name";

const MAX_ROWS = 8;

/** The activity that filters the page, with a button that clears the filter. */
export function ActivityChip() {
  const { nav } = useModel();
  const activity = useActivity();
  if (!activity) return null;
  return (
    <button
      type="button"
      class="chip"
      data-testid="activity-chip"
      title="Show all activities (Esc)"
      onClick={() => nav.filterActivity(null)}
    >
      <i class={`sw a-${activity}`} />
      Activity: {ACTIVITY_NAMES[activity]}
      <Icon name="x" />
      <span class="sr">, remove this filter</span>
    </button>
  );
}

/** One activity in the selected time: by task prefix, by worker and over time. */
export function ActivityPanels({ activity }: { activity: Category }) {
  const prefixes = useCube("time_by_prefix");
  const workers = useCube("time_by_worker");
  const name = ACTIVITY_NAMES[activity];
  if (!prefixes || !workers)
    return (
      <Panel class="mt">
        <Loading />
      </Panel>
    );
  return (
    <div class="cols mt" data-testid="activity-panels">
      <Panel title={`${capital(name)} by task prefix`} class="c4 fcol">
        <Sums cube={prefixes} by="prefix" activity={activity} noun="prefix" />
      </Panel>
      <Panel title={`${capital(name)} by worker`} class="c4 fcol">
        <Sums cube={workers} by="worker" activity={activity} noun="worker" />
      </Panel>
      <Panel title={`${capital(name)} over time`} note="threads" class="c4 fcol">
        <OverTime cube={prefixes} activity={activity} />
      </Panel>
    </div>
  );
}

function Sums({
  cube,
  by,
  activity,
  noun,
}: {
  cube: CubeData;
  by: "prefix" | "worker";
  activity: Category;
  noun: string;
}) {
  const model = useModel();
  const selection = useSettledSelection();
  const found = useMemo(() => {
    const us = sumBy(cube, by, "us", selection, { category: cube.keys.category.indexOf(activity) });
    return cube.keys[by]
      .map((key, i) => ({ key, us: us[i] }))
      .filter((x) => x.us > 0)
      .sort((a, b) => b.us - a.us);
  }, [cube, by, activity, selection.b0, selection.b1]);
  const total = found.reduce((a, x) => a + x.us, 0);
  if (found.length === 0) return <p class="callout">None in the selected time.</p>;
  const rows = found.slice(0, MAX_ROWS).map(
    ({ key, us }): BarRow => ({
      key,
      text: `${duration(us)}  ${percent(us / total)}`,
      parts: [{ key: activity, value: us, class: `a-${activity}`, title: duration(us) }],
      name:
        by === "worker" ? (
          <span title={`${model.worker(key)} ${key}`}>{model.shortWorker(key)}</span>
        ) : key ? (
          <PrefixName prefix={key} />
        ) : (
          <span class="faint">no prefix</span>
        ),
    }),
  );
  return (
    <>
      <BarRows rows={rows} max={found[0].us} />
      <div class="pfoot">
        <span>
          {count(rows.length)} of {counted(found.length, noun, noun === "prefix" ? "prefixes" : "")}
        </span>
        <span class="push">{duration(total)} in total</span>
      </div>
    </>
  );
}

function OverTime({ cube, activity }: { cube: CubeData; activity: Category }) {
  const { axis } = useModel();
  const { b0, b1 } = useSettledSelection();
  const x = useMemo(() => Float64Array.from({ length: b1 - b0 }, (_, i) => (b0 + i + 0.5) * axis.width), [b0, b1]);
  const series = useMemo(() => {
    const all =
      overTime(cube, "category", "us", axis.bins)[cube.keys.category.indexOf(activity)] ?? new Float64Array(axis.bins);
    return [
      {
        label: ACTIVITY_NAMES[activity],
        values: all.subarray(b0, b1).map((us) => us / axis.width),
        colour: `--act-${activity === "idle" ? "idle-on" : activity}`,
      },
    ];
  }, [cube, activity, b0, b1]);
  return (
    <Plot
      label={`Threads in ${ACTIVITY_NAMES[activity]} over time`}
      x={x}
      series={series}
      format={(v) => (v < 10 ? v.toFixed(1) : count(Math.round(v)))}
    />
  );
}
