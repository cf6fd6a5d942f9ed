import { useMemo } from "preact/hooks";
import type { CoffeaRun } from "../api/schema.gen";
import { frequency } from "../model/format";
import { useBinCenters, useSettledSelection } from "../model/hooks";
import { Panel } from "../widgets/basics";
import { type PlotSeries, TimePlot } from "../widgets/plot";

/** Event rate and workers over time. */
export function CoffeaTime({ run }: { run: CoffeaRun }) {
  const { b0, b1 } = useSettledSelection();
  const x = useBinCenters();
  const rate = useMemo(
    (): PlotSeries[] => [{ label: "events per second", values: run.event_rate.slice(b0, b1), colour: "--act-cpu" }],
    [run, b0, b1],
  );
  const workers = useMemo(
    (): PlotSeries[] => [
      { label: "workers", values: run.worker_count.slice(b0, b1), colour: "--act-transfer", stepped: true },
    ],
    [run, b0, b1],
  );
  return (
    <div class="cols mt">
      <Panel title="Event rate over time" class="c7">
        <TimePlot label="Events per second over time" x={x} series={rate} format={frequency} height={180} />
      </Panel>
      <Panel title="Workers over time" class="c5">
        <TimePlot
          label="Workers over time"
          x={x}
          series={workers}
          format={(v) => String(Math.round(v * 10) / 10)}
          height={180}
        />
      </Panel>
    </div>
  );
}
