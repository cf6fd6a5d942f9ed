import { useMemo } from "preact/hooks";
import { connected } from "../../model/active-time";
import { measureText } from "../../model/measures";
import { useAsync, useModel, useSettledSelection } from "../../model/page/hooks";
import { loadSeries, sumWorkers } from "../../model/series";
import { count } from "../../model/text/format";
import { Loading, Panel } from "../../widgets/basics";
import { type PlotSeries, TimePlot } from "../../widgets/plots/plot";
import { PlotKey } from "../parts/plot-key";

const HEIGHT = 120;

interface Line {
  measure: string;
  label: string;
  colour: string;
  fill?: string;
  scale?: number;
}

interface ChartProps {
  title: string;
  lines: readonly Line[];
  /** A dashed line: this number of all connected workers. */
  limit?: { key: "threads" | "memory_limit"; label: string };
  format: (value: number) => string;
  binary?: boolean;
}

const cores = (value: number) => (value < 10 && value % 1 ? value.toFixed(1) : count(Math.round(value)));

/** Memory, CPU and network of all workers in the selected time. */
export function ClusterCharts() {
  return (
    <div class="cols">
      <Chart
        title="Memory"
        lines={[{ measure: "process", label: "in use", colour: "--mem-managed", fill: "--mem-unmanaged" }]}
        limit={{ key: "memory_limit", label: "limit" }}
        format={(v) => measureText("process", v)}
        binary
      />
      <Chart
        title="CPU"
        lines={[
          { measure: "cpu_percent", label: "cores in use", colour: "--act-cpu", fill: "--accent-soft", scale: 0.01 },
        ]}
        limit={{ key: "threads", label: "threads" }}
        format={cores}
      />
      <Chart
        title="Network"
        lines={[
          { measure: "net_read_bps", label: "in", colour: "--act-transfer" },
          { measure: "net_write_bps", label: "out", colour: "--cat-2" },
        ]}
        format={(v) => measureText("net_read_bps", v)}
        binary
      />
    </div>
  );
}

function Chart({ title, lines, limit, format, binary }: ChartProps) {
  const model = useModel();
  const selection = useSettledSelection();
  const { report, axis, columns } = model;
  const loaded = useAsync(
    () => Promise.all(lines.map((line) => loadSeries(report.series, line.measure, axis.bins, columns))),
    [model],
  ).value;
  const { b0, b1 } = selection;
  const x = useMemo(
    () => Float64Array.from({ length: b1 - b0 }, (_, i) => (b0 + i + 0.5) * axis.width),
    [model, b0, b1],
  );
  const series = useMemo(() => {
    if (!loaded) return null;
    const found: PlotSeries[] = lines.flatMap(({ measure, scale = 1, ...line }, i) => {
      const data = loaded[i];
      return data && data.bins === axis.bins && b1 <= data.bins
        ? [{ ...line, values: sumWorkers(data, b0, b1).map((v) => v * scale) }]
        : [];
    });
    const bound = limit && connected(report.workers, limit.key, report.start_us, axis.width, selection);
    if (limit && bound?.some((v) => v > 0) && found.length > 0)
      found.push({ label: limit.label, values: bound, colour: "--text-3", dash: true, stepped: true });
    return found;
  }, [loaded, b0, b1]);
  return (
    <Panel title={title} right={series && <PlotKey series={series} />} class="c4">
      {!series ? (
        <Loading />
      ) : series.length === 0 ? (
        <p class="callout">Not recorded.</p>
      ) : (
        <TimePlot
          label={`${title} of all workers over time`}
          x={x}
          series={series}
          format={format}
          height={HEIGHT}
          binary={binary}
        />
      )}
    </Panel>
  );
}
