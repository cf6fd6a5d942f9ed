import { callOf } from "../model/code";
import { useModel, useParam } from "../model/page/hooks";
import { part, quantityOf } from "../model/quantity";
import { clock, counted, duration, percent } from "../model/text/format";
import { select } from "../model/time";
import { BarRows } from "../widgets/bars/bar-rows";
import { Empty, Panel, SectionHead } from "../widgets/basics";
import { Pick } from "../widgets/controls/inputs";
import { MetricStrip } from "../widgets/metric-strip";
import { PrefixName } from "../widgets/table/prefix-name";
import { DataTable } from "../widgets/table/table";
import { noPathText } from "./answers";

export function CriticalPath() {
  const model = useModel();
  const { report, nav, axis } = model;
  const [chosen, choose] = useParam("computation");
  const paths = [report.critical_path, ...report.other_paths];
  const path = paths.find((p) => p.computation === chosen) ?? report.critical_path;
  if (!path.known) {
    return (
      <>
        <SectionHead title="Critical path" />
        <Panel>
          <Empty title="No critical path">{noPathText(report.groups)}</Empty>
        </Panel>
      </>
    );
  }
  const run = report.totals.duration_us;
  const last = path.steps.at(-1);
  const codeOf = (id: string) => {
    const found = report.computations.find((c) => c.computation === id);
    return found ? callOf(found) : "";
  };
  const nameOf = (id: string) => {
    const found = report.computations.find((c) => c.computation === id);
    return found ? `${clock(model.since(found.start_us))} ${codeOf(id) || counted(found.tasks, "task")}` : id;
  };
  const code = codeOf(path.computation);
  const whole = quantityOf("path-time", path.computation);
  const max = Math.max(1, ...path.by_prefix.map(([, us]) => us));
  return (
    <>
      <SectionHead
        title="Critical path"
        note={code ? `of ${code}` : chosen ? `of ${nameOf(chosen)}` : "of the longest computation"}
      />
      {paths.length > 1 && (
        <div class="filters">
          <Pick
            label="Computation"
            all="the longest"
            options={paths.slice(1).map((p) => [p.computation, nameOf(p.computation)])}
            value={chosen}
            onChange={choose}
          />
        </div>
      )}
      <p class="answer small" data-testid="path-answer">
        <b>
          The critical path is {counted(path.of, "task")} and{" "}
          <data data-quantity={whole}>{duration(path.length_us)}</data> of{" "}
          <data data-quantity="duration">{duration(run)}</data>.
        </b>{" "}
        <span>
          It ends with {last ? <code>{last.prefix || last.key}</code> : "the last task"}, which stopped last. The step
          before a task is the input that finished last or, if the task was ready but its thread started another one,
          that other task.
        </span>
      </p>
      <MetricStrip
        metrics={[
          {
            id: "length",
            quantity: whole,
            label: "Length",
            value: duration(path.length_us),
            note: `${percent(run ? path.length_us / run : 0)} of the run`,
          },
          {
            id: "compute",
            quantity: part(whole, "step", "compute"),
            label: "Compute time",
            value: duration(path.compute_us),
            note: `${percent(path.length_us ? path.compute_us / path.length_us : 0)} of the path`,
          },
          {
            id: "queue",
            quantity: part(whole, "step", "queue"),
            label: "Queued",
            value: duration(path.queue_us),
            note: "at the scheduler",
          },
          {
            id: "transfer",
            quantity: part(whole, "step", "transfer"),
            label: "Transfer",
            value: duration(path.transfer_us),
            note: "of inputs",
          },
          {
            id: "busy",
            quantity: part(whole, "step", "busy"),
            label: "Busy threads",
            value: duration(path.busy_us),
            note: "assigned, not started",
          },
          {
            id: "scheduler",
            quantity: part(whole, "step", "scheduler"),
            label: "Overhead",
            value: duration(path.scheduler_us),
            note: "scheduler, messages, start",
          },
          {
            id: "bound",
            label: "Lower bound",
            value: duration(path.bound_us),
            note: "with unlimited workers",
          },
        ]}
      />
      <Panel title="By task prefix" note="compute time on the path" class="mt">
        <BarRows
          max={max}
          rows={path.by_prefix.map(([prefix, us]) => ({
            key: prefix,
            name: <PrefixName prefix={prefix} />,
            text: (
              <>
                <data data-quantity={part(part(whole, "step", "compute"), "prefix", prefix)}>{duration(us)}</data>
                {`  ${percent(path.compute_us ? us / path.compute_us : 0)}`}
              </>
            ),
            parts: [{ key: "us", value: us, colour: model.colour(prefix), title: duration(us) }],
          }))}
        />
      </Panel>
      <section class="panel mt" aria-label="Steps">
        <DataTable
          title="Steps"
          label="Steps of the critical path"
          name="critical-path"
          rows={path.steps}
          of={path.of}
          note="steps"
          rowKey={(s) => `${s.key} ${s.start_us}`}
          rowTestid="path-row"
          sort={{ id: "start", down: false }}
          onRow={(s) => nav.go("stream", {}, select(axis, model.since(s.start_us - s.wait_us), model.since(s.stop_us)))}
          columns={[
            {
              id: "key",
              head: "Task",
              value: (s) => s.key,
              cell: (s) => (
                <span class="mono cut" title={s.key}>
                  {s.key}
                </span>
              ),
            },
            { id: "prefix", head: "Prefix", value: (s) => s.prefix, cell: (s) => <PrefixName prefix={s.prefix} /> },
            { id: "worker", head: "Worker", value: (s) => model.worker(s.worker) },
            {
              id: "start",
              head: "Start",
              num: true,
              value: (s) => s.start_us,
              cell: (s) => clock(model.since(s.start_us)),
            },
            { id: "wait", head: "Waiting time", num: true, value: (s) => s.wait_us, text: duration },
            { id: "length", head: "Compute time", num: true, value: (s) => s.stop_us - s.start_us, text: duration },
          ]}
        />
        {path.steps.length < path.of && (
          <div class="pfoot warn">
            {counted(path.of - path.steps.length, "step")} not shown; the totals above include them.
          </div>
        )}
      </section>
    </>
  );
}
