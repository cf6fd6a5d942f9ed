import type { Category, Reason } from "../../api/schema.gen";
import { type BinRange, type CubeData, sumBy } from "../../model/cube";
import { useModel } from "../../model/page/hooks";
import { part } from "../../model/quantity";
import { duration, shares } from "../../model/text/format";

/** Why tasks waited, and why threads were idle. */
export function Reasons() {
  const { report } = useModel();
  const reasonsOf = (category: Category) => report.split.find((s) => s.category === category)?.reasons ?? [];
  const waiting = reasonsOf("noncpu");
  const idle = reasonsOf("idle");
  if (waiting.length + idle.length === 0) return null;
  return (
    <div class="reasons" data-testid="reasons">
      <ReasonList title="Why tasks waited" swatch="noncpu" reasons={byLength(waiting)} />
      <ReasonList title="Why threads were idle" swatch="idle" reasons={byLength(idle)} />
    </div>
  );
}

interface ListProps {
  title: string;
  swatch: Category;
  reasons: readonly Reason[];
}

function ReasonList({ title, swatch, reasons }: ListProps) {
  const whole = part("thread-time", "activity", swatch);
  const texts = shares(reasons.map((r) => r.us));
  const total = reasons.reduce((sum, r) => sum + r.us, 0);
  return (
    <table aria-label={title} data-testid={`reasons-${swatch}`}>
      <thead>
        <tr>
          <th scope="col">
            <i class={`sw a-${swatch}`} /> {title}
          </th>
          <th scope="col" class="num">
            {total > 0 && <data data-quantity={whole}>{duration(total)}</data>}
          </th>
          <th scope="col" class="num">
            <span class="sr">Share</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {reasons.map((r, i) => (
          <tr key={r.reason}>
            <th scope="row" title={r.label}>
              {r.label}
            </th>
            <td class="num" data-quantity={part(whole, "reason", r.reason)}>
              {duration(r.us)}
            </td>
            <td class="num faint" data-quantity={part(`${swatch}-share`, "reason", r.reason)}>
              {texts[i]}
            </td>
          </tr>
        ))}
        {reasons.length === 0 && (
          <tr>
            <td class="faint" colSpan={3}>
              {swatch === "idle" ? "No idle time" : "No waiting time"}
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

export function byLength(reasons: readonly Reason[]): Reason[] {
  return reasons.filter((r) => r.us > 0).sort((a, b) => b.us - a.us);
}

/** Return the reasons in the selected time, longest first. Reasons without time there are left out. */
export function reasonsIn(cube: CubeData, reasons: readonly Reason[], range: BinRange): Reason[] {
  const us = sumBy(cube, "reason", "us", range);
  const label = new Map(reasons.map((r) => [r.reason, r.label]));
  return byLength(cube.keys.reason.map((reason, i) => ({ reason, label: label.get(reason) ?? reason, us: us[i] })));
}
