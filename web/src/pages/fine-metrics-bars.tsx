import { CATEGORIES } from "../api/schema.gen";
import { categoryOf } from "../model/activity";
import { activityStyle, type MetricSum } from "../model/fine-metrics";
import { count, percent, quantity } from "../model/format";
import { type BarPart, type BarRow, BarRows } from "../widgets/bar-rows";
import { PrefixName } from "../widgets/prefix-name";

const MAX_ROWS = 20;

/** Sort order that puts activities of one colour side by side; user-defined activities come last. */
const rank = (activity: string) => CATEGORIES.indexOf(categoryOf(activity) ?? "idle");

export function MetricBars({ rows, by, unit }: { rows: MetricSum[]; by: "prefix" | "activity"; unit: string }) {
  const total = rows.reduce((a, r) => a + r.value, 0);
  const grouped = Map.groupBy(rows, (r) => (by === "prefix" ? r.prefix : `${r.context}\0${r.activity}`));
  const lines = [...grouped]
    .map(([key, members]) => ({ key, members, value: members.reduce((a, r) => a + r.value, 0) }))
    .sort((a, b) => b.value - a.value);
  if (lines.length === 0) return <p class="callout">No measurements in {unit || "this unit"}.</p>;
  const shown = lines.slice(0, MAX_ROWS).map(({ key, members, value }): BarRow => {
    const first = members[0];
    const barStyle = (activity: string) => {
      const { colour, class: name } = activityStyle(activity);
      return { colour, class: name };
    };
    const parts: BarPart[] =
      by === "activity"
        ? [{ key, value, title: `${first.activity}: ${quantity(value, unit)}`, ...barStyle(first.activity) }]
        : members
            .sort((a, b) => rank(a.activity) - rank(b.activity) || b.value - a.value)
            .map((m) => ({
              key: m.activity,
              value: m.value,
              title: `${m.activity}: ${quantity(m.value, unit)}`,
              ...barStyle(m.activity),
            }));
    return {
      key,
      parts,
      text: `${quantity(value, unit)}  ${percent(total ? value / total : 0)}`,
      name:
        by === "prefix" ? (
          first.prefix ? (
            <PrefixName prefix={first.prefix} />
          ) : (
            <span class="faint">no prefix</span>
          )
        ) : (
          <span title={`${first.context}: ${first.activity}`}>
            {first.activity} <span class="faint">{first.context}</span>
          </span>
        ),
    };
  });
  return (
    <>
      <BarRows rows={shown} max={lines[0].value} />
      <div class="pfoot">
        <span>
          {count(shown.length)} of {count(lines.length)} {by === "prefix" ? "prefixes" : "activities"}
        </span>
        <span class="push">{quantity(total, unit)} in total</span>
      </div>
    </>
  );
}
