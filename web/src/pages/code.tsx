import type { Computation } from "../api/schema.gen";
import { clock, count, counted, duration } from "../model/format";
import { useModel, useSelection } from "../model/hooks";
import { select } from "../model/time";
import { copy, Empty, Panel, ViewHead } from "../widgets/basics";
import { Pill, type PillState } from "../widgets/icon";
import { TimeRuler } from "../widgets/time-ruler";

const STATES: Record<string, PillState> = { finished: "finished", done: "finished", memory: "finished", ok: "finished", erred: "erred", error: "erred", processing: "running", running: "running", lost: "lost", cancelled: "idle" };

export function Code() {
  const { report } = useModel();
  return (
    <>
      <ViewHead title="Code" note={counted(report.computations.length, "computation")} />
      <TimeRuler />
      {report.calling_code && (
        <Panel title="The block that was recorded" class="mt">
          <pre class="src" tabIndex={0} style="margin-top:2px">
            {report.calling_code.split("\n").map((line, i) => <span key={i}><i>{i + 1}</i> {line}</span>)}
          </pre>
        </Panel>
      )}
      {report.computations.length === 0 ? (
        <Panel class="mt"><Empty title="No code was recorded">Dask keeps the lines that called compute, persist or submit when distributed.diagnostics.computations is on.</Empty></Panel>
      ) : (
        report.computations.map((c, i) => <Snippet key={c.computation} number={i + 1} computation={c} />)
      )}
    </>
  );
}

function Snippet({ computation: c, number }: { computation: Computation; number: number }) {
  const model = useModel();
  const now = useSelection();
  const { nav, axis, report } = model;
  const from = model.since(c.start_us);
  const to = c.stop_us > 0 ? model.since(c.stop_us) : axis.length;
  const mine = select(axis, from, to);
  const inside = !now.whole && mine.t0 === now.t0 && mine.t1 === now.t1;
  const lines = c.code.split("\n");
  const groups = report.groups.filter((g) => g.computation === c.computation).length;
  return (
    <Panel
      class="mt" title={`${number}. ${c.code_file ? c.code_file.split(/[\\/]/).slice(-2).join("/") : "Code not recorded"}`}
      note={`${clock(from)} to ${clock(to)}, ${duration(to - from)}, ${counted(c.tasks, "task")}${groups ? `, ${counted(groups, "group")}` : ""}`}
      right={
        <>
          {c.errors > 0 && <span class="bad">{counted(c.errors, "error")}</span>}
          <Pill state={STATES[c.state] ?? "idle"}>{c.state || "not recorded"}</Pill>
          <button type="button" class="btn sm" aria-pressed={inside} onClick={() => nav.select(mine)}>{inside ? "Selected" : "Select this time"}</button>
          <button type="button" class="btn sm" onClick={() => nav.go("overview", {}, mine)}>Open</button>
        </>
      }
    >
      {c.code ? (
        <pre class="src" tabIndex={0} style="margin-top:2px" aria-label={`Code of ${count(lines.length)} lines`}>
          {lines.map((line, i) => (
            <span key={i} style={i === c.code_line ? "background:var(--accent-soft);box-shadow:inset 3px 0 0 var(--accent)" : ""}>
              <i>{i + 1}</i> {line}
            </span>
          ))}
        </pre>
      ) : (
        <p class="callout">The calling lines are not known.</p>
      )}
      {c.code && <div class="pfoot"><span class="faint">{c.code_file}</span><button type="button" class="link push" onClick={() => copy(c.code, "Code copied")}>Copy</button></div>}
    </Panel>
  );
}
