import { useMemo } from "preact/hooks";
import { count, duration, nbytes, percent } from "../model/format";
import { useCube, useModel, useParam, useSettled } from "../model/hooks";
import { pairs, rate } from "../model/transfers";
import { Loading, Panel, Seg, ViewHead } from "../widgets/basics";
import { MetricStrip } from "../widgets/metrics";
import { Matrix } from "../widgets/matrix";
import { type PlotSeries, TimePlot } from "../widgets/plot";
import { DataTable } from "../widgets/table";
import { TimeRuler } from "../widgets/time-ruler";

export function Bandwidth() {
  const model = useModel();
  const { b0, b1 } = useSettled();
  const cube = useCube("transfers");
  const [show, setShow] = useParam("show", "rate");
  const rows = useMemo(() => (cube ? pairs(cube, b0, b1) : null), [cube, b0, b1]);
  const x = useMemo(() => Float64Array.from({ length: b1 - b0 }, (_, i) => (b0 + i + 0.5) * model.axis.width), [b0, b1]);
  const series = useMemo((): PlotSeries[] => {
    if (!cube) return [];
    const values = new Float64Array(b1 - b0);
    for (let row = 0; row < cube.rows; row++) if (cube.bin[row] >= b0 && cube.bin[row] < b1) values[cube.bin[row] - b0] += cube.measures.nbytes[row] / (model.axis.width / 1e6);
    return [{ label: "all workers", values, colour: "--act-transfer" }];
  }, [cube, b0, b1]);
  const sum = (key: "count" | "nbytes" | "compressed" | "us") => rows?.reduce((a, r) => a + r[key], 0) ?? 0;
  const wire = sum("compressed");
  // Not every worker tells; a share of all bytes would look like compression.
  const told = rows?.reduce((a, r) => a + (r.compressed > 0 ? r.nbytes : 0), 0) ?? 0;
  const name = (address: string) => model.worker(address);
  return (
    <>
      <ViewHead title="Bandwidth" note="transfers between workers" />
      <TimeRuler />
      {!rows ? <Panel class="mt"><Loading /></Panel> : rows.length === 0 ? <Panel class="mt"><p class="callout" style="border:0">No transfer was recorded in the selected time.</p></Panel> : (
        <>
          <div class="mt">
            <MetricStrip
              metrics={[
                { id: "moved", label: "Moved", value: nbytes(sum("nbytes")), note: `${count(sum("count"))} transfers` },
                { id: "rate", label: "Mean rate of a transfer", value: `${nbytes(rate({ nbytes: sum("nbytes"), us: sum("us") }))}/s`, note: `${duration(sum("us"))} spent in transfers` },
                { id: "wire", label: "On the wire", value: wire > 0 ? nbytes(wire) : "not recorded", note: wire > 0 ? `${percent(wire / told)} of ${nbytes(told)} in memory${told < sum("nbytes") ? "; rest not told" : ""}` : "this side does not know" },
                { id: "pairs", label: "Pairs", value: count(rows.length), note: `of ${count(model.report.workers.length * (model.report.workers.length - 1))} possible` },
              ]}
            />
          </div>
          <div class="cols mt">
            <Panel title="From worker to worker" class="c7" right={<Seg label="Show" options={[["rate", "Rate"], ["bytes", "Bytes"]]} value={show} onChange={setShow} />}>
              <Matrix pairs={rows} show={show === "bytes" ? "bytes" : "rate"} />
            </Panel>
            <Panel title="Over time" note="received by all workers" class="c5">
              <TimePlot label="Bytes a second received by all workers" x={x} series={series} format={(v) => `${nbytes(v)}/s`} binary height={260} />
            </Panel>
          </div>
          <section class="panel mt" aria-label="Pairs">
            <DataTable
              title="Slowest pairs" label="Pairs of workers" name="transfers" rows={rows} note="pairs" sort={{ id: "rate", down: false }} rowKey={(r) => `${r.source} ${r.destination}`} compact
              columns={[
                { id: "source", head: "From", value: (r) => name(r.source) },
                { id: "destination", head: "To", value: (r) => name(r.destination) },
                { id: "rate", head: "Rate", num: true, value: rate, cell: (r) => `${nbytes(rate(r))}/s` },
                { id: "nbytes", head: "Bytes", num: true, value: (r) => r.nbytes, cell: (r) => nbytes(r.nbytes) },
                { id: "ratio", head: "On the wire", num: true, value: (r) => (r.nbytes ? r.compressed / r.nbytes : 0), cell: (r) => (r.compressed > 0 ? percent(r.compressed / r.nbytes) : "not recorded") },
                { id: "count", head: "Transfers", num: true, value: (r) => r.count, cell: (r) => count(r.count) },
                { id: "us", head: "Time", num: true, value: (r) => r.us, cell: (r) => duration(r.us) },
              ]}
            />
          </section>
        </>
      )}
    </>
  );
}
