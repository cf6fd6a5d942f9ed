import type { ComparedPrefix } from "../../api/schema.gen";
import { changeText, quantityText } from "../../model/comparison";
import { count, duration } from "../../model/text/format";
import { Panel } from "../basics";
import { CardTable } from "./card-table";

/** A verdict; only proven ones have a colour. */
export function ChangeVerdict({ verdict }: { verdict: ComparedPrefix["verdict"] }) {
  if (verdict === "slower") return <span class="pill erred">slower</span>;
  if (verdict === "faster") return <span class="pill finished">faster</span>;
  return <span class="faint">{verdict}</span>;
}

/** Task prefixes before and after. */
export function ComparedPrefixes({ prefixes }: { prefixes: readonly ComparedPrefix[] }) {
  return (
    <Panel title="Task prefixes" note="The largest change of the total compute time first" class="mt">
      <CardTable class="compact">
        <thead>
          <tr>
            <th>Prefix</th>
            <th class="num">Tasks</th>
            <th class="num">Time per task</th>
            <th class="num">Change</th>
            <th class="num" title="With enough repeats, corrected for how slow the machine was in each run">
              CPU per task
            </th>
            <th class="num">Change of CPU</th>
            <th class="num">Total time</th>
            <th>Verdict</th>
          </tr>
        </thead>
        <tbody>
          {prefixes.map((p) => (
            <tr key={p.prefix} data-testid="compared-prefix">
              <td class="mono">{p.prefix}</td>
              <td class="num">{step(p.count, count)}</td>
              <td class="num">{step(p.time, duration)}</td>
              <td class="num">{changeText(p.time)}</td>
              <td class="num">{step(p.cpu, duration)}</td>
              <td class="num">{changeText(p.cpu)}</td>
              <td class="num">{step(p.total_us, duration)}</td>
              <td>
                <ChangeVerdict verdict={p.verdict} />
              </td>
            </tr>
          ))}
        </tbody>
      </CardTable>
    </Panel>
  );
}

function step(change: ComparedPrefix["time"], text: (value: number) => string): string {
  const [before, after] = [change.before, change.after].map((value) => quantityText(value, text));
  return before === after ? before : `${before} → ${after}`;
}
