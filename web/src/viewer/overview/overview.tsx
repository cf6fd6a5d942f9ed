import { useContext, useState } from "preact/hooks";
import { useActivity, useModel } from "../../model/page/hooks";
import { slowerText } from "../../model/run-groups";
import { parseTraceback } from "../../model/text/traceback";
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
import { ShowWorkers } from "../answer-line";
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
  const { titled, below, history, answer } = useContext(FrameContext);
  const { headline, reason } = answer ?? report.answer;
  // A lost worker is the more important news.
  const slower = history && report.totals.workers_lost === 0 ? slowerText(history.run, history.recent) : "";
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
        <b>{slower ? `${headline.replace(/\.$/, "")}, ${slower}.` : headline}</b> <span>{reason}</span>
        {report.answer.state === "finished" && <ShowWorkers />}
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
        <MetricStrip metrics={metricsOf(report, history)} />
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
      {below}
      <EnvironmentFold />
    </>
  );
}

/** The recording, and package versions and configuration, which are loaded when the reader opens them. */
function EnvironmentFold() {
  const { report } = useModel();
  const [open, setOpen] = useState(false);
  return (
    <div class="folds mt">
      <details data-testid="environment" onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>
          Environment <span class="faint">recording, package versions and configuration of Dask</span>
        </summary>
        {open && report.facts.length > 0 && (
          <Panel title="About this recording" note={`created by ${report.generator}`}>
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
        {open && <EnvironmentView />}
      </details>
    </div>
  );
}

/** The exception that ended the recorded block. */
function Failure({ text }: { text: string }) {
  const [cause] = parseTraceback(text);
  return <Traceback title="Exception in the recorded block" type={cause.error} message="" text={text} />;
}
