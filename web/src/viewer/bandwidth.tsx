import { useMemo } from "preact/hooks";
import { useCube, useModel, useParam, useSettledSelection } from "../model/page/hooks";
import { count, counted, duration, nbytes } from "../model/text/format";
import { pairs, rate } from "../model/transfers";
import { Loading, Panel, ViewHead } from "../widgets/basics";
import { Seg } from "../widgets/controls/inputs";
import { TransferMatrix } from "../widgets/graphs/transfer-matrix";
import { MetricStrip } from "../widgets/metric-strip";
import { type PlotSeries, TimePlot } from "../widgets/plots/plot";
import { TimeRuler } from "../widgets/stream/time-ruler";
import { DataTable } from "../widgets/table/table";

export function Bandwidth() {
  const model = useModel();
  const { b0, b1 } = useSettledSelection();
  const cube = useCube("transfers");
  const [show, setShow] = useParam("show", "rate");
  const rows = useMemo(() => (cube ? pairs(cube, b0, b1) : null), [cube, b0, b1]);
  const x = useMemo(
    () => Float64Array.from({ length: b1 - b0 }, (_, i) => (b0 + i + 0.5) * model.axis.width),
    [b0, b1],
  );
  const series = useMemo((): PlotSeries[] => {
    if (!cube) return [];
    const values = new Float64Array(b1 - b0);
    for (let row = 0; row < cube.rows; row++)
      if (cube.bin[row] >= b0 && cube.bin[row] < b1)
        values[cube.bin[row] - b0] += cube.measures.nbytes[row] / (model.axis.width / 1e6);
    return [{ label: "all workers", values, colour: "--act-transfer" }];
  }, [cube, b0, b1]);
  const sum = (key: "count" | "nbytes" | "compressed" | "us") => rows?.reduce((a, r) => a + r[key], 0) ?? 0;
  const wire = sum("compressed");
  // Not all workers report compressed sizes. A share of all bytes would look like compression.
  const reported = rows?.reduce((a, r) => a + (r.compressed > 0 ? r.nbytes : 0), 0) ?? 0;
  // An address that is not a worker is a client that fetched results.
  const isWorker = new Set(model.report.workers.map((w) => w.worker));
  const name = (address: string) => (isWorker.has(address) ? model.worker(address) : "client");
  const between = rows?.filter((r) => isWorker.has(r.source) && isWorker.has(r.destination)) ?? [];
  const { shuffled } = model.report.totals;
  return (
    <>
      <ViewHead title="Network" note="Transfers between workers" />
      <TimeRuler />
      {!rows ? (
        <Panel class="mt">
          <Loading />
        </Panel>
      ) : rows.length === 0 ? (
        <Panel class="mt">
          <p class="callout" style="border:0">
            No transfers in the selected time.
          </p>
        </Panel>
      ) : (
        <>
          <div class="mt">
            <MetricStrip
              metrics={[
                {
                  id: "moved",
                  label: "Transferred",
                  value: nbytes(sum("nbytes")),
                  note: shuffled
                    ? `and ${nbytes(shuffled)} by P2P shuffles in the whole run`
                    : counted(sum("count"), "transfer"),
                },
                {
                  id: "rate",
                  label: "Mean rate",
                  value: `${nbytes(rate({ nbytes: sum("nbytes"), us: sum("us") }))}/s`,
                  note: `${duration(sum("us"))} in transfers`,
                },
                {
                  id: "wire",
                  label: "On the wire",
                  value: wire > 0 ? nbytes(wire) : "not recorded",
                  note: wire > 0 ? `of ${nbytes(reported)} in memory` : "no sizes reported",
                },
                {
                  id: "pairs",
                  label: "Worker pairs",
                  value: count(between.length),
                  note: `of ${count(model.report.workers.length * (model.report.workers.length - 1))} possible`,
                },
              ]}
            />
          </div>
          <div class="cols mt">
            <Panel
              title="Worker to worker"
              class="c7"
              right={
                <Seg
                  label="Show"
                  options={[
                    ["rate", "Rate"],
                    ["bytes", "Bytes"],
                  ]}
                  value={show}
                  onChange={setShow}
                />
              }
            >
              <TransferMatrix pairs={between} show={show === "bytes" ? "bytes" : "rate"} />
            </Panel>
            <Panel title="Rate over time" note="all workers" class="c5">
              <TimePlot
                label="Bytes per second received by all workers"
                x={x}
                series={series}
                format={(v) => `${nbytes(v)}/s`}
                binary
                height={260}
              />
            </Panel>
          </div>
          <section class="panel mt" aria-label="Worker pairs">
            <DataTable
              title="Slowest pairs"
              label="Worker pairs"
              name="transfers"
              rows={rows}
              note="pairs"
              sort={{ id: "rate", down: false }}
              rowKey={(r) => `${r.source} ${r.destination}`}
              compact
              columns={[
                { id: "source", head: "From", value: (r) => name(r.source) },
                { id: "destination", head: "To", value: (r) => name(r.destination) },
                { id: "rate", head: "Rate", num: true, value: rate, cell: (r) => `${nbytes(rate(r))}/s` },
                { id: "nbytes", head: "Bytes", num: true, value: (r) => r.nbytes, cell: (r) => nbytes(r.nbytes) },
                {
                  id: "wire",
                  head: "On the wire",
                  num: true,
                  value: (r) => r.compressed,
                  cell: (r) => (r.compressed > 0 ? nbytes(r.compressed) : "not recorded"),
                },
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
