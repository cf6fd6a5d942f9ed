import type { Computation } from "../api/schema.gen";
import { type CodeFile, callOf, codeFiles, type Excerpt } from "../model/code";
import { shortFile } from "../model/flame";
import { useModel, useSelection } from "../model/page/hooks";
import { clock, counted, duration } from "../model/text/format";
import { select } from "../model/time";
import { Empty, Panel, SectionHead } from "../widgets/basics";
import { copy } from "../widgets/clipboard";
import { StatePill } from "../widgets/icon";

export function Code() {
  const { report } = useModel();
  return (
    <>
      <SectionHead title="Code" note={counted(report.computations.length, "computation")} />
      {report.calling_code && (
        <Panel title="Recorded block" class="mt">
          <Source excerpt={{ code: report.calling_code, time: new Map() }} />
        </Panel>
      )}
      {report.computations.length === 0 ? (
        <Panel class="mt">
          <Empty title="No code recorded">
            {" "}
            Dask records the code that calls compute, persist or submit if distributed.diagnostics.computations is on.
          </Empty>
        </Panel>
      ) : (
        codeFiles(report.computations, report.stop_us).map((file) => (
          <File key={file.calls[0].computation} file={file} />
        ))
      )}
    </>
  );
}

/** The excerpts of a file with the time of each line that submitted a computation, and these computations. */
function File({ file: { file, excerpts, calls } }: { file: CodeFile }) {
  return (
    <Panel class="mt" title={file ? shortFile(file) : "Code not recorded"} note={counted(calls.length, "computation")}>
      {excerpts.map((excerpt, i) => (
        <Source key={i} excerpt={excerpt} />
      ))}
      {excerpts.length === 0 && <p class="callout">No code recorded for this computation.</p>}
      <div>
        {calls.map((c) => (
          <Call key={c.computation} computation={c} />
        ))}
      </div>
      {excerpts.length > 0 && (
        <div class="pfoot">
          <span class="faint">{file}</span>
          <button
            type="button"
            class="link push"
            onClick={() => copy(excerpts.map((e) => e.code).join("\n\n"), "Code copied")}
          >
            Copy
          </button>
        </div>
      )}
    </Panel>
  );
}

function Source({ excerpt: { code, time } }: { excerpt: Excerpt }) {
  const lines = code.split("\n");
  return (
    <pre
      class="src"
      tabIndex={0}
      role="region"
      style="margin-top:2px"
      aria-label={`Code, ${counted(lines.length, "line")}`}
    >
      {lines.map((line, i) => (
        <span key={i} style={time.has(i) ? "background:var(--accent-soft);box-shadow:inset 3px 0 0 var(--accent)" : ""}>
          <i>{time.has(i) ? "▸" : ""}</i> {line}
          {time.has(i) && <b class="faint">{`  took ${duration(time.get(i) ?? 0)}`}</b>}
        </span>
      ))}
    </pre>
  );
}

/** A computation: when, how long, how it ended, and buttons to select its time. */
function Call({ computation: c }: { computation: Computation }) {
  const model = useModel();
  const now = useSelection();
  const { nav, axis, report } = model;
  const from = model.since(c.start_us);
  const to = c.stop_us > 0 ? model.since(c.stop_us) : axis.length;
  const own = select(axis, from, to);
  const isSelected = !now.whole && own.t0 === now.t0 && own.t1 === now.t1;
  const groups = report.groups.filter((g) => g.computation === c.computation).length;
  return (
    <div class="filters">
      <StatePill state={c.state} />
      <span style="overflow-wrap:anywhere;min-width:0;flex:1 1 260px">
        {c.code && <code>{callOf(c)}</code>} {""}
        submitted at {clock(from)}, ended at {clock(to)}, {duration(to - from)}, {counted(c.tasks, "task")}
        {groups ? `, ${counted(groups, "task group")}` : ""}
        {c.graph_us > 0 ? `, graph unpacked in ${duration(c.graph_us)}` : ""}
      </span>
      {c.errors > 0 && <span class="bad">{counted(c.errors, "error")}</span>}
      <button type="button" class="btn sm push" aria-pressed={isSelected} onClick={() => nav.select(own)}>
        {isSelected ? "Selected" : "Select time"}
      </button>
      <button type="button" class="btn sm" onClick={() => nav.go("overview", {}, own)}>
        Open
      </button>
    </div>
  );
}
