import { useMemo } from "preact/hooks";
import { useCube, useModel, useParam, useSettledSelection } from "../model/page/hooks";
import { part } from "../model/quantity";
import { count, counted, duration, nbytes } from "../model/text/format";
import { isRated, type Pair, pairs, rate } from "../model/transfers";
import { Loading, Panel, ViewHead } from "../widgets/basics";
import { Seg } from "../widgets/controls/inputs";
import { TransferMatrix } from "../widgets/graphs/transfer-matrix";
import { MetricStrip } from "../widgets/metric-strip";
import { type PlotSeries, TimePlot } from "../widgets/plots/plot";
import { TimeRuler } from "../widgets/stream/time-ruler";
import { DataTable } from "../widgets/table/table";
import { AnswerLine } from "./answer-line";
import { FETCHED, networkAnswer, SHUFFLED } from "./answers";

export function Bandwidth() {
  const model = useModel();
  const { b0, b1, whole } = useSettledSelection();
  const cube = useCube("transfers");
  const [show, setShow] = useParam("show", "bytes");
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
  const sum = (key: "count" | "nbytes" | "us") => rows?.reduce((a, r) => a + r[key], 0) ?? 0;
  // An address that is not a worker is a client that fetched results.
  const isWorker = new Set(model.report.workers.map((w) => w.worker));
  const name = (address: string) => (isWorker.has(address) ? model.worker(address) : "client");
  const between = rows?.filter((r) => isWorker.has(r.source) && isWorker.has(r.destination)) ?? [];
  const ofPair = (all: string, r: Pair) => (whole ? part(all, "pair", `${r.source} ${r.destination}`) : undefined);
  const { shuffled } = model.report.totals;
  return (
    <>
      <ViewHead title="Network" />
      <AnswerLine
        answer={
          cube &&
          networkAnswer(
            pairs(cube, 0, model.axis.bins),
            shuffled,
            (address) => model.called(address),
            (address) => isWorker.has(address),
          )
        }
      />
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
                  label: "Fetched",
                  value: nbytes(sum("nbytes")),
                  note: counted(sum("count"), "transfer"),
                  quantity: whole ? FETCHED : undefined,
                },
                ...(shuffled > 0
                  ? [
                      {
                        id: "shuffled",
                        label: "P2P shuffles",
                        value: nbytes(shuffled),
                        note: "whole run",
                        quantity: SHUFFLED,
                      },
                    ]
                  : []),
                {
                  id: "time",
                  label: "Time in transfers",
                  value: duration(sum("us")),
                  note: "all transfers, many at once",
                  quantity: whole ? "transfer-time" : undefined,
                },
                {
                  id: "rate",
                  label: "Mean rate",
                  value: `${nbytes(rate({ nbytes: sum("nbytes"), us: sum("us") }))}/s`,
                  note: "per transfer",
                },
              ]}
            />
          </div>
          <div class="cols mt">
            {between.length > 0 ? (
              <Panel
                title="Worker to worker"
                class="c7"
                right={
                  <Seg
                    label="Show"
                    options={[
                      ["bytes", "Bytes"],
                      ["rate", "Rate"],
                    ]}
                    value={show}
                    onChange={setShow}
                  />
                }
              >
                <TransferMatrix pairs={between} show={show === "rate" ? "rate" : "bytes"} />
              </Panel>
            ) : (
              <Panel title="Worker to worker" class="c12">
                <p class="callout">No transfers between workers.</p>
              </Panel>
            )}
            <Panel title="Rate over time" note="all workers" class={between.length > 0 ? "c5" : "c12"}>
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
                {
                  id: "source",
                  head: "From",
                  value: (r) => name(r.source),
                  cell: (r) => (
                    <>
                      <span class="only-card">From</span>
                      {name(r.source)}
                    </>
                  ),
                },
                { id: "destination", head: "To", value: (r) => name(r.destination) },
                {
                  id: "rate",
                  head: "Rate",
                  hint: "Bytes per second of transfer time. Pairs with less than 1 MiB come last",
                  num: true,
                  value: (r) => (isRated(r) ? rate(r) : Number.NaN),
                  cell: (r) => <span class={isRated(r) ? "" : "faint"}>{nbytes(rate(r))}/s</span>,
                },
                {
                  id: "nbytes",
                  head: "Bytes",
                  num: true,
                  value: (r) => r.nbytes,
                  text: nbytes,
                  quantity: (r) => ofPair(FETCHED, r),
                },
                {
                  id: "wire",
                  head: "On the wire",
                  num: true,
                  value: (r) => r.compressed,
                  cell: (r) => (r.compressed > 0 ? nbytes(r.compressed) : "not recorded"),
                },
                { id: "count", head: "Transfers", num: true, value: (r) => r.count, text: count },
                {
                  id: "us",
                  head: "Time",
                  num: true,
                  value: (r) => r.us,
                  text: duration,
                  quantity: (r) => ofPair("transfer-time", r),
                },
              ]}
            />
          </section>
        </>
      )}
    </>
  );
}
