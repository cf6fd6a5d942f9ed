import type { Error as Failure } from "../api/schema.gen";
import { clock, span, count, counted, moment } from "../model/format";
import { useModel, useNav, useSettled } from "../model/hooks";
import { select } from "../model/time";
import { Empty, Panel, ViewHead } from "../widgets/basics";
import { Pill } from "../widgets/icon";
import { MetricStrip } from "../widgets/metrics";
import { DataTable } from "../widgets/table";
import { TimeRuler } from "../widgets/time-ruler";
import { Traceback } from "../widgets/traceback";

export function Errors() {
  const model = useModel();
  const { params } = useNav();
  const selection = useSettled();
  const { report, nav } = model;
  if (report.errors.length === 0) {
    return (
      <>
        <ViewHead title="Errors" />
        <Panel><Empty title="No task failed">Failures of tasks would be listed here, one line for each kind, with the traceback.</Empty></Panel>
      </>
    );
  }
  const at = Math.min(Number(params.item) || 0, report.errors.length - 1);
  const chosen = report.errors[at];
  const inside = selection.whole ? report.errors : report.errors.filter((e) => model.since(e.first_us) < selection.t1 && model.since(e.last_us) >= selection.t0);
  return (
    <>
      <ViewHead title="Errors" note={`${counted(report.errors.length, "kind")}, ${counted(report.totals.errors, "failed execution")}`} />
      <TimeRuler />
      <section class="panel mt" aria-label="Kinds of errors">
        <DataTable
          title="Kinds" label="Table of errors" name="errors" rows={inside} of={report.errors.length} note={selection.whole ? "kinds" : "kinds seen in the selected time; counts are of the whole run"} empty="No error was seen in the selected time" rowKey={(e) => e.fingerprint} rowTestid="error-row" selected={(e) => e === chosen} onRow={(e) => nav.set({ item: String(report.errors.indexOf(e)) })} sort={{ id: "count", down: true }}
          columns={[
            { id: "type", head: "Type", value: (e) => e.type, cell: (e) => <b class="mono cut" style="max-width:26ch" title={e.type}>{e.type}</b> },
            { id: "message", head: "Message", value: (e) => e.message, cell: (e) => <span class="cut" style="max-width:40ch" title={e.message}>{e.message}</span> },
            { id: "prefixes", head: "Prefix", value: (e) => e.prefixes.join(", "), cell: (e) => <span class="mono cut" style="max-width:26ch" title={e.prefixes.join(", ")}>{e.prefixes.join(", ")}</span> },
            { id: "count", head: "Executions", num: true, value: (e) => e.count, cell: (e) => count(e.count) },
            { id: "retried", head: "Retried", num: true, value: (e) => e.retried, cell: (e) => count(e.retried) },
            { id: "first", head: "First", num: true, value: (e) => e.first_us, cell: (e) => clock(model.since(e.first_us)) },
            { id: "last", head: "Last", num: true, value: (e) => e.last_us, cell: (e) => clock(model.since(e.last_us)) },
          ]}
        />
      </section>
      <Detail error={chosen} />
    </>
  );
}

function Detail({ error: e }: { error: Failure }) {
  const model = useModel();
  const { nav, report } = model;
  const final = e.count - e.retried;
  const width = report.bins.width_us;
  const show = () => nav.go("stream", {}, select(model.axis, model.since(e.first_us) - 8 * width, model.since(e.last_us) + 8 * width));
  return (
    <>
      <div class="section">
        <Pill state="erred">{final > 0 ? "Not recovered" : "Retried"}</Pill>
        <h2 style="overflow-wrap:anywhere">{e.type}{e.prefixes[0] && <> in <code>{e.prefixes[0]}</code></>}</h2>
        <button type="button" class="link push" style="font-size:12px;flex:none" onClick={show}>Show {span(model.since(e.first_us), model.since(e.last_us))}</button>
      </div>
      <MetricStrip
        metrics={[
          { id: "executions", label: "Executions", value: count(e.count), note: `of ${counted(report.totals.tasks, "task")}` },
          { id: "retried", label: "Retried", value: count(e.retried), note: final > 0 ? `${count(final)} not retried` : "all of them" },
          { id: "first", label: "First seen", value: clock(model.since(e.first_us)), note: moment(e.first_us) },
          { id: "last", label: "Last seen", value: clock(model.since(e.last_us)), note: moment(e.last_us) },
        ]}
      />
      <div class="cols mt">
        <div class="c8"><Traceback type={e.type} message={e.message} text={e.traceback} /></div>
        <div class="c4" style="display:grid;gap:16px;align-content:start">
          <Panel title="What they share">
            <div class="dist">
              <Shares title="Prefix" values={e.prefixes} />
              <Shares title="Worker" values={e.workers.map((w) => model.worker(w))} />
            </div>
          </Panel>
          <Panel title="Tasks" note={e.keys.length < e.count ? `${count(e.keys.length)} of ${count(e.count)}` : undefined}>
            <ul class="deps" style="padding:0 16px 12px;font-size:12px">
              {e.keys.slice(0, 20).map((k) => <li class="mono cut" style="display:block;max-width:100%" key={k} title={k}>{k}</li>)}
            </ul>
          </Panel>
        </div>
      </div>
    </>
  );
}

function Shares({ title, values }: { title: string; values: readonly string[] }) {
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
        {values.length > 4 && <li><span>{values.length - 4} others</span></li>}
      </ul>
    </>
  );
}
