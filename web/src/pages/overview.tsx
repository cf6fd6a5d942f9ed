import { useState } from "preact/hooks";
import type { Finding, Gain, Report } from "../api/schema.gen";
import { count, counted, dollars, duration, nbytes, nbytesOf, percent, span, UNKNOWN } from "../model/format";
import { ACTIVITY_NAMES } from "../model/activity";
import { useFromCube, useModel, useActivity } from "../model/hooks";
import { sumBy } from "../model/cube";
import { select } from "../model/time";
import { VIEWS } from "../model/nav";
import { ActivityPanels } from "../widgets/activity";
import { Empty, Panel, Seg } from "../widgets/basics";
import { Icon, type IconName, Pill } from "../widgets/icon";
import { type Metric, MetricStrip } from "../widgets/metrics";
import { PrefixTable } from "../widgets/prefix-table";
import { StreamPanel } from "../widgets/stream-panel";
import { TimeRuler } from "../widgets/time-ruler";
import { type Part, TimeBar } from "../widgets/timebar";
import { Traceback } from "../widgets/traceback";
import { viewName } from "../widgets/views";
import { FlamePanel } from "../widgets/flame-panel";
import { MemoryPanel } from "../widgets/memory-panel";

const HOW = `with daskscope.performance_report("report.html"):
    df.groupby("zone").agg("mean").compute()`;
const WORDS = { running: "Running", finished: "Finished", erred: "Erred", lost: "Lost", idle: "Idle" } as const;

export function Overview() {
  const { report } = useModel();
  const activity = useActivity();
  return (
    <>
      <div class="title">
        <Pill state={report.answer.status}>{WORDS[report.answer.status]}</Pill>
        <h1 title={report.title}>
          <code>{report.title}</code>
        </h1>
      </div>
      <p class="answer">
        <b>{report.answer.headline}</b> <span>{report.answer.reason}</span>
      </p>
      {report.failure && (
        <div class="mt">
          <Failure text={report.failure} />
        </div>
      )}
      {report.answer.status === "idle" && (
        <Panel class="mt">
          <Empty title="Nothing was computed while this was recorded" snippet={HOW}>Everything inside of the block is recorded, on the cluster of the current client:</Empty>
        </Panel>
      )}
      <div class="stack">
        <MetricStrip metrics={metricsOf(report)} />
        <Split />
      </div>
      <Findings />
      <div class="section">
        <h2>In the selected time</h2>
        <span class="note hide-n">every panel below follows the selection</span>
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
        <Panel title="About this recording" note={`made by ${report.generator}`} class="mt">
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
    </>
  );
}

/** The exception that ended the block that was recorded. */
function Failure({ text }: { text: string }) {
  const last = text.trimEnd().split("\n").at(-1) ?? "";
  const colon = last.indexOf(": ");
  return <Traceback title="The block ended with an exception" type={colon > 0 ? last.slice(0, colon) : last} message={colon > 0 ? last.slice(colon + 2) : ""} text={text} />;
}

/** A process has some memory: a peak of nothing means that nobody looked. */
function memoryOf(t: Report["totals"]): Pick<Metric, "value" | "note"> {
  if (t.peak_memory === 0) return { value: UNKNOWN, note: "no sample of a worker" };
  const [peak, limit] = nbytesOf(t.peak_memory, t.memory_limit);
  return { value: t.memory_limit > 0 ? <>{peak} <small>of {limit}</small></> : nbytes(t.peak_memory), note: t.spilled > 0 ? `${nbytes(t.spilled)} spilled` : "nothing spilled" };
}

function metricsOf({ totals: t }: Report): Metric[] {
  const some = (...parts: [number, string][]) => parts.filter(([n]) => n > 0).map(([n, word]) => `${count(n)} ${word}`).join(", ");
  return [
    { id: "duration", label: "Duration", value: duration(t.duration_us), note: t.tasks === 0 ? "no task ran" : t.fully_idle_us > 0 ? `${duration(t.fully_idle_us)} without any task` : "some task ran all the time" },
    { id: "tasks", label: "Tasks", value: count(t.tasks), note: some([t.recomputed, "recomputed"], [t.retries, "retried"], [t.killed, "killed"]) || (t.tasks === 0 ? "nothing ran" : "each ran once") },
    { id: "errors", label: "Errors", value: count(t.errors), note: t.retries ? `${count(t.retries)} more ${t.retries === 1 ? "was" : "were"} tried again` : t.errors ? "none was tried again" : "no task failed" },
    { id: "threads", label: "Threads", value: <>{count(t.threads)} <small>on {counted(t.workers - t.workers_lost, "worker")}</small></>, note: t.workers_lost > 0 ? `${counted(t.workers_lost, "worker")} lost` : `${t.parallelism.toFixed(1)} busy on average` },
    { id: "memory", label: "Peak memory", ...memoryOf(t) },
    { id: "transferred", label: "Transferred", value: nbytes(t.transferred), note: `${nbytes(t.nbytes)} of results` },
    ...(t.cost ? [{ id: "cost", label: "Cost, estimated", value: dollars(t.cost.total), note: `${dollars(t.cost.idle)} idle; ${t.cost.formula}` }] : []),
  ];
}

type By = "activity" | "function" | "span";

function Split() {
  const { report, nav } = useModel();
  const activity = useActivity();
  const [by, setBy] = useState<By>("activity");
  const { totals } = report;
  const choose = (key: string) => nav.pick(report.split.find((s) => s.category === key)?.category ?? null);
  return (
    <Panel
      title="Where the time went"
      note={`${duration(totals.thread_us)} of thread time on ${counted(totals.threads, "thread")}`}
      right={<Seg label="Split thread time by" options={[["activity", "Activity"], ["function", "Function"], ["span", "Span"]]} value={by} onChange={setBy} testid="split-switch" />}
    >
      {totals.thread_us === 0 ? <p class="callout">No thread time was recorded.</p> : by === "activity" ? <TimeBar label="Thread time by activity" chosen={activity} onChoose={choose} parts={report.split.map((s) => ({ key: s.category, label: s.label, us: s.us, class: `a-${s.category}` }))} /> : <SplitBy by={by} />}
      {activity && <p class="callout" aria-live="polite">Below, times are those of <b>{ACTIVITY_NAMES[activity]}</b> alone. <button type="button" class="link" onClick={() => nav.pick(null)}>Show all</button></p>}
    </Panel>
  );
}

function SplitBy({ by }: { by: "function" | "span" }) {
  const model = useModel();
  const { report } = model;
  const sums = useFromCube(by === "function" ? "time_by_prefix" : "time_by_span", (cube) => {
    const key = by === "function" ? "prefix" : "span";
    const idle = sumBy(cube, key, "us", null, { category: cube.keys.category.indexOf("idle") });
    // Idle time belongs to nobody and has its own part of the bar.
    return { names: cube.keys[key], us: sumBy(cube, key, "us", null).map((us, i) => us - idle[i]) };
  }, [by]);
  if (!sums) return <div style="height:92px" />;
  const spanName = new Map(report.spans.map((s) => [s.span, s.name]));
  const found = sums.names.map((name, i) => ({ name, us: sums.us[i] })).filter((x) => x.us > 0).sort((a, b) => b.us - a.us);
  const parts: Part[] = found.slice(0, 7).map(({ name, us }, i) => ({ key: name, label: by === "function" ? name || "no function" : spanName.get(name) || name || "no span", us, colour: by === "function" ? model.colour(name) : `--cat-${i + 1}`, mono: by === "function" }));
  const rest = found.slice(7).reduce((a, x) => a + x.us, 0);
  if (rest > 0) parts.push({ key: "", label: `${found.length - 7} others`, us: rest, colour: "--cat-rest" });
  const idle = report.split.find((s) => s.category === "idle");
  if (idle) parts.push({ key: "\0idle", label: idle.label, us: idle.us, class: "a-idle" });
  return <TimeBar label={`Thread time by ${by}`} parts={parts} />;
}

const ICONS: [RegExp, IconName][] = [[/straggl|slow|idle|wait/i, "slow"], [/loop|profile|lock|cpu/i, "profile"], [/worker|lost/i, "workers"], [/memory|spill/i, "memory"], [/transfer|band/i, "bandwidth"], [/error|fail/i, "errors"]];

function Findings() {
  const { report } = useModel();
  const [all, setAll] = useState(false);
  const shown = all ? report.findings : report.findings.slice(0, 3);
  if (report.findings.length === 0) return null;
  return (
    <>
      <div class="section">
        <h2>Findings</h2>
        <span class="note">a failure first, then what could save most</span>
        {report.findings.length > 3 && (
          <button type="button" class="link push" style="font-size:12px" onClick={() => setAll(!all)}>
            {all ? "Show fewer" : `Show ${report.findings.length - 3} more`}
          </button>
        )}
      </div>
      <div class="cols">
        {shown.map((f, i) => (
          <FindingCard key={i} finding={f} />
        ))}
      </div>
    </>
  );
}

/** What it could save at most, or that nobody can say. */
function GainText({ gain }: { gain: Gain | null }) {
  if (!gain) return <span class="gain none" data-testid="gain">no estimate</span>;
  return (
    <span class="gain" data-testid="gain">
      up to {duration(gain.us)}
      <em>{percent(gain.share)} of {gain.of === "run" ? "the run" : "thread time"}</em>
    </span>
  );
}

function FindingCard({ finding: f }: { finding: Finding }) {
  const model = useModel();
  const view = VIEWS.find((v) => v === f.view) ?? "stream";
  const whole = f.start_us <= model.report.start_us && f.stop_us >= model.report.stop_us;
  const timed = f.stop_us > f.start_us && f.start_us > 0 && !whole;
  const from = model.since(f.start_us);
  const to = model.since(f.stop_us);
  const selection = timed ? select(model.axis, from, to) : model.nav.state.selection;
  return (
    <article class="panel finding c4" data-testid="finding">
      <div class="top">
        <Icon name={ICONS.find(([words]) => words.test(f.kind))?.[1] ?? "overview"} />
        <span class="kind" style="display:inline-block">{f.kind}</span>
        <GainText gain={f.gain} />
      </div>
      <h3 title={f.title}>{f.title}</h3>
      <p>{f.evidence}</p>
      {f.advice && <p class="do">{f.advice}</p>}
      {f.gain && <p class="how">Estimate: {f.gain.how}.</p>}
      <div class="links">
        <a
          href={model.nav.href(view, {}, selection)}
          onClick={(e) => {
            e.preventDefault();
            model.nav.go(view, {}, selection);
          }}
        >
          {viewName(view)}
          {timed && `, ${span(from, to)}`}
        </a>
      </div>
    </article>
  );
}
