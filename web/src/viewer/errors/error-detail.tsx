import type { Error as Failure } from "../../api/schema.gen";
import { useModel } from "../../model/page/hooks";
import { quantityOf } from "../../model/quantity";
import { clock, count, counted, moment, span } from "../../model/text/format";
import { select } from "../../model/time";
import { Panel } from "../../widgets/basics";
import { Pill } from "../../widgets/icon";
import { MetricStrip } from "../../widgets/metric-strip";
import { Traceback } from "../../widgets/traceback";

export function ErrorDetail({ error: e }: { error: Failure }) {
  const model = useModel();
  const { nav, report } = model;
  const final = e.count - e.retried;
  const width = report.bins.width_us;
  const show = () =>
    nav.go("stream", {}, select(model.axis, model.since(e.first_us) - 8 * width, model.since(e.last_us) + 8 * width));
  return (
    <>
      <div class="section">
        <Pill state="erred">{final > 0 ? "Failed" : "Retried"}</Pill>
        <h2 style="overflow-wrap:anywhere">
          {e.type}
          {e.prefixes[0] && (
            <>
              {" "}
              in <code>{e.prefixes[0]}</code>
            </>
          )}
        </h2>
        <button type="button" class="link push" style="font-size:12px;flex:none" onClick={show}>
          Show {span(model.since(e.first_us), model.since(e.last_us))}
        </button>
      </div>
      <MetricStrip
        metrics={[
          {
            id: "executions",
            label: "Occurrences",
            value: count(e.count),
            quantity: quantityOf("occurrences", e.fingerprint),
            note: `of ${counted(report.totals.tasks, "task run")}`,
          },
          {
            id: "retried",
            label: "Retried",
            value: count(e.retried),
            note: final > 0 ? `${count(final)} not retried` : "all",
          },
          { id: "first", label: "First seen", value: clock(model.since(e.first_us)), note: moment(e.first_us) },
          { id: "last", label: "Last seen", value: clock(model.since(e.last_us)), note: moment(e.last_us) },
        ]}
      />
      <div class="cols mt">
        <div class="c8">
          <Traceback type={e.type} message={e.message} text={e.traceback} />
        </div>
        <div class="c4" style="display:grid;gap:16px;align-content:start">
          <Panel title="Common properties">
            <div class="dist">
              <CommonValues title="Prefix" values={e.prefixes} />
              <CommonValues
                title="Worker"
                values={[...e.workers].sort((a, b) => model.compareWorkers(a, b)).map((w) => model.worker(w))}
              />
            </div>
          </Panel>
          <Panel
            title="Tasks"
            note={e.keys.length < e.count ? `${count(e.keys.length)} of ${count(e.count)}` : undefined}
          >
            <ul class="deps" style="padding:0 16px 12px;font-size:12px">
              {e.keys.slice(0, 20).map((k) => (
                <li class="mono cut" style="display:block;max-width:100%" key={k} title={k}>
                  {k}
                </li>
              ))}
            </ul>
          </Panel>
        </div>
      </div>
    </>
  );
}

function CommonValues({ title, values }: { title: string; values: readonly string[] }) {
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {values.slice(0, 4).map((v) => (
          <li key={v} title={v}>
            {values.length === 1 && <i style="width:100%" />}
            <span class="mono">{v}</span>
            <span>{values.length === 1 ? "all" : ""}</span>
          </li>
        ))}
        {values.length > 4 && (
          <li>
            <span>{values.length - 4} others</span>
          </li>
        )}
      </ul>
    </>
  );
}
