import { useContext, useState } from "preact/hooks";
import { useActivity, useModel } from "../../model/page/hooks";
import { ActivityPanels } from "../../widgets/activity-panels";
import { Empty, Panel } from "../../widgets/basics";
import { FlamePanel } from "../../widgets/flame/flame-panel";
import { OutcomePill } from "../../widgets/icon";
import { MemoryPanel } from "../../widgets/memory/memory-panel";
import { MetricStrip } from "../../widgets/metric-strip";
import { StreamPanel } from "../../widgets/stream/stream-panel";
import { TimeRuler } from "../../widgets/stream/time-ruler";
import { PrefixTable } from "../../widgets/table/prefix-table";
import { Traceback } from "../../widgets/traceback";
import { EnvironmentView } from "../environment";
import { FrameContext } from "../views";
import { TopFailure } from "./overview-failure";
import { Findings } from "./overview-findings";
import { metricsOf } from "./overview-metrics";
import { ThreadTime } from "./overview-thread-time";

const EXAMPLE = `with daskscope.performance_report("report.html"):
    df.groupby("zone").agg("mean").compute()`;

export function Overview() {
  const { report } = useModel();
  const activity = useActivity();
  const { titled, below, answer } = useContext(FrameContext);
  const { headline, reason } = answer ?? report.answer;
  return (
    <>
      {!titled && (
        <div class="title">
          <OutcomePill state={report.answer.state} lost={report.totals.workers_lost} />
          <h1 title={report.title}>
            <code>{report.title}</code>
          </h1>
        </div>
      )}
      <p class="answer" data-testid="answer">
        <b>{headline}</b> <span>{reason}</span>
      </p>
      <TopFailure />
      {report.failure && (
        <div class="mt">
          <Failure text={report.failure} />
        </div>
      )}
      {report.totals.tasks === 0 && report.answer.state === "finished" && report.complete && (
        <Panel class="mt">
          <Empty title="No computations recorded" snippet={EXAMPLE}>
            {" "}
            Everything inside the block is recorded, on the cluster of the current client:
          </Empty>
        </Panel>
      )}
      <div class="stack">
        <MetricStrip metrics={metricsOf(report)} />
        <ThreadTime />
      </div>
      <Findings />
      <div class="section">
        <h2>Selected time</h2> <span class="note hide-n">All panels below follow the selection</span>
        <span class="note hide-n push">
          <kbd>W</kbd> <kbd>S</kbd> zoom &nbsp;<kbd>A</kbd> <kbd>D</kbd> pan &nbsp;<kbd>Esc</kbd> whole run
        </span>
      </div>
      <TimeRuler joined />
      <StreamPanel maxHeight={440} />
      {activity && <ActivityPanels activity={activity} />}
      <div class="cols mt">
        <FlamePanel class="c7" />
        <MemoryPanel class="c5" />
      </div>
      <div class="mt">
        <PrefixTable />
      </div>
      {report.facts.length > 0 && (
        <Panel title="About this recording" note={`created by ${report.generator}`} class="mt">
          <dl class="facts">
            {report.facts.map((f) => (
              <div key={f.label}>
                <dt>{f.label}</dt>
                <dd title={f.text}>{f.text}</dd>
              </div>
            ))}
          </dl>
        </Panel>
      )}
      <EnvironmentFold />
      {below}
    </>
  );
}

/** Package versions and configuration, which are loaded when the reader opens them. */
function EnvironmentFold() {
  const [open, setOpen] = useState(false);
  return (
    <div class="folds mt">
      <details data-testid="environment" onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>
          Environment <span class="faint">package versions and configuration of Dask</span>
        </summary>
        {open && <EnvironmentView />}
      </details>
    </div>
  );
}

/** The exception that ended the recorded block. */
function Failure({ text }: { text: string }) {
  const last = text.trimEnd().split("\n").at(-1) ?? "";
  const colon = last.indexOf(": ");
  return (
    <Traceback
      title="Exception in the recorded block"
      type={colon > 0 ? last.slice(0, colon) : last}
      message={colon > 0 ? last.slice(colon + 2) : ""}
      text={text}
    />
  );
}
