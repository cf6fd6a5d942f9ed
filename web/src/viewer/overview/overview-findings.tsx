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
  const shown = all ? report.findings : report.findings.slice(0, 3);
  if (report.findings.length === 0) return null;
  return (
    <>
      <div class="section">
        <h2>Findings</h2>
        <span class="note">Failures first, then by estimated saving</span>
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
    <span class="gain" data-testid="gain">
      up to {duration(gain.us)}
      <em>
        {percent(gain.share)} of {gain.of === "run" ? "the run" : "thread time"}
      </em>
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
      {f.gain && (
        <p class="how">
          Estimate: {f.gain.how}
          {f.gain.of === "threads" &&
            f.gain.wall_high_us > 0 &&
            `; ${duration(f.gain.wall_low_us)} to ${duration(f.gain.wall_high_us)} of the run`}
          {f.gain.cost_high > 0 && `; up to ${money(f.gain.cost_high)}`}.
        </p>
      )}
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
