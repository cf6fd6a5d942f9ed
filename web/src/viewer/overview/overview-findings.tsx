import { useState } from "preact/hooks";
import type { Finding, Gain } from "../../api/schema.gen";
import { useModel } from "../../model/page/hooks";
import { VIEWS } from "../../model/page/nav";
import { duration, money, percent, span } from "../../model/text/format";
import { select } from "../../model/time";
import { Icon, type IconName } from "../../widgets/icon";
import { viewName } from "../views";

const ICONS: [RegExp, IconName][] = [
  [/straggl|slow|idle|wait/i, "slow"],
  [/loop|profile|lock|cpu/i, "profile"],
  [/worker|lost/i, "workers"],
  [/memory|spill/i, "memory"],
  [/transfer|band/i, "bandwidth"],
  [/error|fail/i, "errors"],
];

export function Findings() {
  const { report } = useModel();
  const [all, setAll] = useState(false);
  const found = eventsFirst(report.findings);
  const shown = all ? found : found.slice(0, 3);
  if (report.findings.length === 0) return null;
  return (
    <>
      <div class="section">
        <h2>Findings</h2>
        <span class="note">
          {isEvent(found[0]) ? "What went wrong first, then by estimated saving" : "By estimated saving"}
        </span>
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

const EVENTS = ["error", "lost worker"];
const isEvent = (finding: Finding) => EVENTS.includes(finding.kind);

/** Move findings about what the headline says to the front. What they cost may be little. */
function eventsFirst(findings: readonly Finding[]): Finding[] {
  return [...findings.filter(isEvent), ...findings.filter((finding) => !isEvent(finding))];
}

/** How a saving was estimated, as a sentence. */
function howEstimated(gain: Gain): string {
  const wall =
    gain.of !== "threads"
      ? ""
      : gain.wall_high_us > 0
        ? `; ${duration(gain.wall_low_us)} to ${duration(gain.wall_high_us)} of the run`
        : "; the run would not be shorter";
  return `Estimate: ${gain.how}${wall}${gain.cost_high > 0 ? `; up to ${money(gain.cost_high)}` : ""}.`;
}

/** The estimated saving of a finding, if there is an estimate. */
function EstimatedSaving({ gain }: { gain: Gain | null }) {
  if (!gain)
    return (
      <span class="gain none" data-testid="gain">
        {" "}
        no estimate
      </span>
    );
  return (
    <span class="gain" data-testid="gain" title={howEstimated(gain)}>
      up to {duration(gain.us)} of {gain.of === "run" ? "the run" : "thread time"}
      <em>{percent(gain.share)}</em>
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
        <span class="kind" style="display:inline-block">
          {f.kind}
        </span>
        <EstimatedSaving gain={f.gain} />
      </div>
      <h3 title={f.title}>{f.title}</h3>
      <p>{f.evidence}</p>
      {f.advice && <p class="do">{f.advice}</p>}
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
