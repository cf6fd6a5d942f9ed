import { clock, count, counted, duration, percent } from "../model/format";
import { useModel } from "../model/hooks";
import { select } from "../model/time";
import { Empty, Panel, ViewHead } from "../widgets/basics";
import { BarRows } from "../widgets/bars";
import { MetricStrip } from "../widgets/metrics";
import { PrefixName } from "../widgets/prefix-table";
import { DataTable } from "../widgets/table";

export function Path() {
  const model = useModel();
  const { report, nav, axis } = model;
  const path = report.critical_path;
  if (!path.known) {
    return <><ViewHead title="Critical path" /><Panel><Empty title="The critical path is not known">It needs the dependencies between tasks, and they were not recorded.</Empty></Panel></>;
  }
  const run = report.totals.duration_us;
  const last = path.steps.at(-1);
  const most = Math.max(1, ...path.by_prefix.map(([, us]) => us));
  return (
    <>
      <ViewHead title="Critical path" note="the chain that leads to the execution that stopped last" />
      <p class="answer small" data-testid="path-answer">
        <b>One chain of {counted(path.of, "execution")} spans {duration(path.length_us)}, {percent(run ? path.length_us / run : 0)} of the run.</b>{" "}
        <span>
          It goes back from {last ? <code>{last.prefix || last.key}</code> : "the execution"}, which stopped last, always to the input that came last. Other chains, and earlier computations that this one did not need, are not on it.
        </span>
      </p>
      <MetricStrip
        metrics={[
          { id: "length", label: "Length", value: duration(path.length_us), note: `of ${duration(run)} that the run took` },
          { id: "compute", label: "Computing", value: duration(path.compute_us), note: `${percent(path.length_us ? path.compute_us / path.length_us : 0)} of the chain` },
          { id: "wait", label: "Waiting between", value: duration(path.wait_us), note: `${percent(path.length_us ? path.wait_us / path.length_us : 0)} of the chain` },
          { id: "bound", label: "Lower bound", value: duration(path.bound_us), note: "longest chain, however many workers" },
        ]}
      />
      <Panel title="By prefix" note="computing on the path" class="mt">
        <BarRows most={most} rows={path.by_prefix.map(([prefix, us]) => ({ key: prefix, name: <PrefixName prefix={prefix} />, text: `${duration(us)}  ${percent(path.length_us ? us / path.length_us : 0)}`, parts: [{ key: "us", value: us, colour: model.colour(prefix), title: duration(us) }] }))} />
      </Panel>
      <section class="panel mt" aria-label="Steps">
        <DataTable
          title="Steps" label="Steps of the critical path" name="critical-path" rows={path.steps} of={path.of} note="steps" rowKey={(s) => `${s.key} ${s.start_us}`} rowTestid="path-row" sort={{ id: "start", down: false }}
          onRow={(s) => nav.go("stream", {}, select(axis, model.since(s.start_us - s.wait_us), model.since(s.stop_us)))}
          columns={[
            { id: "key", head: "Task", value: (s) => s.key, cell: (s) => <span class="mono cut" title={s.key}>{s.key}</span> },
            { id: "prefix", head: "Prefix", value: (s) => s.prefix, cell: (s) => <PrefixName prefix={s.prefix} /> },
            { id: "worker", head: "Worker", value: (s) => model.worker(s.worker) },
            { id: "start", head: "Start", num: true, value: (s) => s.start_us, cell: (s) => clock(model.since(s.start_us)) },
            { id: "when", head: "When", value: (s) => s.start_us, width: "26%", cell: (s) => (
              <div class="life" role="img" aria-label={`${clock(model.since(s.start_us))} to ${clock(model.since(s.stop_us))}`}>
                <i style={{ left: `${(model.since(s.start_us - s.wait_us) / axis.length) * 100}%`, width: `${(s.wait_us / axis.length) * 100}%`, top: "5px", bottom: "5px" }} />
                <i style={{ left: `${(model.since(s.start_us) / axis.length) * 100}%`, width: `${((s.stop_us - s.start_us) / axis.length) * 100}%`, background: `var(${model.colour(s.prefix)})` }} />
              </div>
            ) },
            { id: "wait", head: "Waited", num: true, value: (s) => s.wait_us, cell: (s) => duration(s.wait_us) },
            { id: "length", head: "Computed", num: true, value: (s) => s.stop_us - s.start_us, cell: (s) => duration(s.stop_us - s.start_us) },
          ]}
        />
        {path.steps.length < path.of && <div class="pfoot warn">{count(path.of - path.steps.length)} steps are left out here; the sums above include them.</div>}
      </section>
    </>
  );
}
