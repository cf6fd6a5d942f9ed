import { useMemo } from "preact/hooks";
import { CATEGORIES } from "../../api/schema.gen";
import { categoryOf } from "../../model/activity";
import { activityStyle, type HitRate, hitRate, legendOf, type MetricSum, sumMetrics } from "../../model/fine-metrics";
import { useActivity, useCube, useSettledSelection } from "../../model/page/hooks";
import { count, nbytes, percent, quantity } from "../../model/text/format";
import { type BarPart, type BarRow, BarRows } from "../../widgets/bars/bar-rows";
import { Loading, Panel, ViewHead } from "../../widgets/basics";
import { TimeRuler } from "../../widgets/stream/time-ruler";
import { PrefixName } from "../../widgets/table/prefix-name";
import { DataTable } from "../../widgets/table/table";
import { IdleInSelection } from "../overview/overview-reasons";
import { FilterBar, useFilters } from "./fine-metrics-filters";

export function FineMetrics() {
  const selection = useSettledSelection();
  const cube = useCube("activities");
  const category = useActivity();
  const filters = useFilters();
  const { unit, prefix, label, span, internal, prefixes, labels } = filters;
  const rows = useMemo(
    () => cube && sumMetrics(cube, selection, { unit, prefixes, activities: labels, span, category, internal }),
    [cube, selection.b0, selection.b1, unit, prefix, label, span, category, internal],
  );
  // Chosen labels stay in the list, although the others may not occur with them.
  const activities = useMemo(() => {
    const all = cube ? sumMetrics(cube, selection, { unit, prefixes, span, category, internal }) : [];
    return [...new Set([...all.map((m) => m.activity), ...labels])].sort();
  }, [cube, selection.b0, selection.b1, unit, prefix, label, span, category, internal]);
  const hits = useMemo(
    () => cube && hitRate(cube, selection, { prefixes, span }),
    [cube, selection.b0, selection.b1, prefix, span],
  );
  return (
    <>
      <ViewHead title="Time" note="Measured by workers while they execute, fetch and send" />
      <TimeRuler />
      <Panel class="mt" foot={rows && <MetricLegend rows={rows} hits={hits} />}>
        <FilterBar filters={filters} activities={activities} />
      </Panel>
      {!rows ? (
        <Panel class="mt">
          <Loading />
        </Panel>
      ) : (
        <Panels rows={rows} unit={unit} />
      )}
    </>
  );
}

/** The colours of the bars, and how many inputs were in memory. */
function MetricLegend({ rows, hits }: { rows: readonly MetricSum[]; hits: HitRate | null }) {
  return (
    <>
      <ul class="keylist" data-testid="fine-legend">
        {legendOf(rows).map((style) => (
          <li key={style.name}>
            <i class={`sw ${style.class ?? ""}`} style={{ background: style.colour && `var(${style.colour})` }} />
            {style.name}
          </li>
        ))}
      </ul>
      {hits && (
        <span class="push" data-testid="hit-rate" title="The others were read back from disk after they were spilled">
          Inputs from memory: <b>{percent(hits.share)}</b> (
          {hits.unit === "count"
            ? `${count(hits.hits)} of ${count(hits.reads)} reads`
            : `${nbytes(hits.hits)} of ${nbytes(hits.reads)}`}
          )
        </span>
      )}
    </>
  );
}

function Panels({ rows, unit }: { rows: MetricSum[]; unit: string }) {
  const execute = rows.filter((r) => r.context === "execute");
  const sending = rows.filter((r) => r.context === "get-data");
  const other = rows.filter((r) => r.context !== "get-data");
  return (
    <>
      <div class="cols mt">
        <Panel title="By task prefix" note="while executing" class="c12">
          <MetricBars rows={execute.length > 0 ? execute : other} by="prefix" unit={unit} />
        </Panel>
        <Panel title="By activity" note="without sending" class="c6">
          <MetricBars rows={other} by="activity" unit={unit} />
        </Panel>
        <Panel title="Sending data" note="to other workers" class="c6">
          <MetricBars rows={sending} by="activity" unit={unit} />
        </Panel>
      </div>
      {unit === "seconds" && <IdleInSelection />}
      <section class="panel mt" aria-label="All metrics">
        <DataTable
          title="All metrics"
          label="Metrics by context, task prefix and activity"
          name="fine-metrics"
          rows={rows}
          sort={{ id: "value", down: true }}
          rowKey={(r) => `${r.context}/${r.prefix}/${r.activity}`}
          compact
          columns={[
            { id: "context", head: "Context", value: (r) => r.context },
            {
              id: "prefix",
              head: "Prefix",
              value: (r) => r.prefix,
              cell: (r) => <span class="mono">{r.prefix}</span>,
            },
            { id: "activity", head: "Activity", value: (r) => r.activity },
            {
              id: "value",
              head: unit || "value",
              num: true,
              value: (r) => r.value,
              cell: (r) => quantity(r.value, unit),
            },
          ]}
        />
      </section>
    </>
  );
}

const MAX_ROWS = 20;

/** Sort order that puts activities of one colour side by side; user-defined activities come last. */
const rank = (activity: string) => CATEGORIES.indexOf(categoryOf(activity) ?? "idle");

function MetricBars({ rows, by, unit }: { rows: MetricSum[]; by: "prefix" | "activity"; unit: string }) {
  const total = rows.reduce((a, r) => a + r.value, 0);
  const grouped = Map.groupBy(rows, (r) => (by === "prefix" ? r.prefix : `${r.context}\0${r.activity}`));
  const lines = [...grouped]
    .map(([key, members]) => ({ key, members, value: members.reduce((a, r) => a + r.value, 0) }))
    .sort((a, b) => b.value - a.value);
  if (lines.length === 0) return <p class="callout">No measurements in {unit || "this unit"}.</p>;
  const shown = lines.slice(0, MAX_ROWS).map(({ key, members, value }): BarRow => {
    const first = members[0];
    const barStyle = (activity: string) => {
      const { colour, class: name } = activityStyle(activity);
      return { colour, class: name };
    };
    const parts: BarPart[] =
      by === "activity"
        ? [{ key, value, title: `${first.activity}: ${quantity(value, unit)}`, ...barStyle(first.activity) }]
        : members
            .sort((a, b) => rank(a.activity) - rank(b.activity) || b.value - a.value)
            .map((m) => ({
              key: m.activity,
              value: m.value,
              title: `${m.activity}: ${quantity(m.value, unit)}`,
              ...barStyle(m.activity),
            }));
    return {
      key,
      parts,
      text: `${quantity(value, unit)}  ${percent(total ? value / total : 0)}`,
      name:
        by === "prefix" ? (
          first.prefix ? (
            <PrefixName prefix={first.prefix} />
          ) : (
            <span class="faint">no prefix</span>
          )
        ) : (
          <span title={`${first.context}: ${first.activity}`}>
            {first.activity} <span class="faint">{first.context}</span>
          </span>
        ),
    };
  });
  return (
    <>
      <BarRows rows={shown} max={lines[0].value} />
      <div class="pfoot">
        <span>
          {count(shown.length)} of {count(lines.length)} {by === "prefix" ? "prefixes" : "activities"}
        </span>
        <span class="push">{quantity(total, unit)} in total</span>
      </div>
    </>
  );
}
