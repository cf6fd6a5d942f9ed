import { useMemo } from "preact/hooks";
import { useAsync, useBinCenters, useModel, useSettledSelection } from "../model/hooks";
import { measureText } from "../model/measures";
import { loadSeries, sumWorkers } from "../model/series";
import { Loading, Panel } from "../widgets/basics";
import { TimePlot } from "../widgets/plot";

/** CPU and event loop of the scheduler over time. */
export function SchedulerPlots() {
  const { report } = useModel();
  if (report.scheduler.workers.length === 0) return null;
  return (
    <div class="cols mt" data-testid="scheduler">
      <SchedulerPlot
        title="Scheduler CPU"
        measure="cpu_percent"
        label="CPU"
        note="100 % is one core, the most it can use"
      />
      <SchedulerPlot
        title="Scheduler event loop"
        measure="loop_lag_us"
        label="Delay"
        note="How late it runs; near zero unless the scheduler is busy"
      />
    </div>
  );
}

interface PlotProps {
  title: string;
  measure: string;
  label: string;
  note: string;
}

function SchedulerPlot({ title, measure, label, note }: PlotProps) {
  const { report, axis, columns } = useModel();
  const { b0, b1 } = useSettledSelection();
  const data = useAsync(() => loadSeries(report.scheduler, measure, axis.bins, columns), [measure]).value;
  const x = useBinCenters();
  const series = useMemo(
    () => data && [{ label, values: sumWorkers(data, b0, b1), colour: "--accent" }],
    [data, b0, b1],
  );
  return (
    <Panel title={title} note={note} class="c6">
      {series ? (
        <TimePlot
          label={`${title} over time`}
          x={x}
          series={series}
          format={(v) => measureText(measure, v)}
          height={150}
        />
      ) : (
        <Loading />
      )}
    </Panel>
  );
}
