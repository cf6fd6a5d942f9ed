import { useMemo } from "preact/hooks";
import { type HitRate, hitRate, legendOf, type MetricSum, sumMetrics } from "../model/fine-metrics";
import { count, nbytes, percent, quantity } from "../model/format";
import { useActivity, useCube, useSettledSelection } from "../model/hooks";
import { Loading, Panel, ViewHead } from "../widgets/basics";
import { DataTable } from "../widgets/table";
import { TimeRuler } from "../widgets/time-ruler";
import { MetricBars } from "./fine-metrics-bars";
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
      <ViewHead title="Fine metrics" note="Measured by workers while they execute, fetch and send" />
      <TimeRuler />
      <Panel class="mt" foot={rows && <Legend rows={rows} hits={hits} />}>
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
function Legend({ rows, hits }: { rows: readonly MetricSum[]; hits: HitRate | null }) {
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
