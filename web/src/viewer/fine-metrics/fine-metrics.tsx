import { useMemo } from "preact/hooks";
import {
  activityName,
  contextName,
  type HitRate,
  hitRate,
  legendOf,
  type MetricSum,
  sumByStyle,
  sumMetrics,
} from "../../model/fine-metrics";
import { useActivity, useCube, useModel, useSettledSelection } from "../../model/page/hooks";
import { count, nbytes, percent, quantity } from "../../model/text/format";
import { type BarPart, type BarRow, BarRows } from "../../widgets/bars/bar-rows";
import { Loading, Panel, SectionHead, ViewHead } from "../../widgets/basics";
import { TimeRuler } from "../../widgets/stream/time-ruler";
import { PrefixName } from "../../widgets/table/prefix-name";
import { DataTable } from "../../widgets/table/table";
import { AnswerLine } from "../answer-line";
import { timeAnswer } from "../answers";
import { FilterBar, useFilters } from "./fine-metrics-filters";
import { ThreadTimeInSelection } from "./thread-time";

export function FineMetrics() {
  const { report } = useModel();
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
      <ViewHead title="Time" />
      <AnswerLine answer={timeAnswer(report.split)} />
      <TimeRuler />
      <ThreadTimeInSelection />
      <SectionHead
        title="Measured by workers"
        note="sums of all task runs, lost ones too, and of transfers at the same time"
      />
      <Panel foot={rows && <MetricLegend rows={rows} hits={hits} />}>
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

/** The colours of the bars, and how many inputs were in memory if some were not. */
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
      {hits && hits.share < 1 && (
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
        <Panel title="Sending data" note="to workers and clients" class="c6">
          <MetricBars rows={sending} by="activity" unit={unit} />
        </Panel>
      </div>
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
            {
              id: "context",
              head: "Context",
              value: (r) => r.context,
              cell: (r) => <span title={r.context}>{contextName(r.context)}</span>,
            },
            {
              id: "prefix",
              head: "Prefix",
              value: (r) => r.prefix,
              cell: (r) => <span class="mono">{r.prefix}</span>,
            },
            {
              id: "activity",
              head: "Activity",
              value: (r) => r.activity,
              cell: (r) => <span title={r.activity}>{activityName(r.activity, r.context)}</span>,
            },
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

function MetricBars({ rows, by, unit }: { rows: MetricSum[]; by: "prefix" | "activity"; unit: string }) {
  const total = rows.reduce((a, r) => a + r.value, 0);
  const grouped = Map.groupBy(rows, (r) => (by === "prefix" ? r.prefix : `${r.context}\0${r.activity}`));
  const lines = [...grouped]
    .map(([key, members]) => ({ key, members, value: members.reduce((a, r) => a + r.value, 0) }))
    .sort((a, b) => b.value - a.value);
  if (lines.length === 0) return <p class="callout">No measurements in {unit || "this unit"}.</p>;
  const shown = lines.slice(0, MAX_ROWS).map(({ key, members, value }): BarRow => {
    const first = members[0];
    const parts = sumByStyle(members).map(
      ({ style, value, members }): BarPart => ({
        key: style.name,
        value,
        colour: style.colour,
        class: style.class,
        title: members.map((m) => `${activityName(m.activity, m.context)}: ${quantity(m.value, unit)}`).join("\n"),
      }),
    );
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
            {activityName(first.activity, first.context)} <span class="faint">{contextName(first.context)}</span>
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
