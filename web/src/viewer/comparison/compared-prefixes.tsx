import type { ComparedPrefix } from "../../api/schema.gen";
import { changeText } from "../../model/comparison";
import { count, duration, NOTHING } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { ShortTable } from "../../widgets/table/card-table";

/** A verdict; only proven ones have a colour. */
function ChangeVerdict({ verdict }: { verdict: ComparedPrefix["verdict"] }) {
  if (verdict === "slower") return <span class="pill erred">slower</span>;
  if (verdict === "faster") return <span class="pill finished">faster</span>;
  return <span class="faint">{verdict}</span>;
}

/** Task prefixes before and after. */
export function ComparedPrefixes({ prefixes }: { prefixes: readonly ComparedPrefix[] }) {
  return (
    <Panel title="Task prefixes" note="The largest change of the total compute time first" class="mt">
      <ShortTable
        class="compact"
        rows={prefixes}
        keyOf={(p) => p.prefix}
        testid="compared-prefix"
        columns={[
          ["Prefix", (p) => p.prefix, "mono"],
          ["Tasks", (p) => step(p.count, count), "num wide"],
          ["Time per task", (p) => step(p.time, duration), "num wide"],
          ["Change", (p) => changeText(p.time), "num"],
          [
            <span title="With enough repeats, corrected for how slow the machine was in each run">CPU per task</span>,
            (p) => step(p.cpu, duration),
            "num wide",
          ],
          ["Change of CPU", (p) => changeText(p.cpu), "num"],
          ["Total time", (p) => step(p.total_us, duration), "num wide"],
          ["Verdict", (p) => <ChangeVerdict verdict={p.verdict} />],
        ]}
      />
    </Panel>
  );
}

function step(change: ComparedPrefix["time"], text: (value: number) => string): string {
  // A prefix that ran on one side only has no time on the other.
  const [before, after] = [change.before, change.after].map((value) => (value === null ? NOTHING : text(value)));
  return before === after ? before : `${before} → ${after}`;
}
