import { useMemo } from "preact/hooks";
import { CATEGORIES, type Category } from "../api/schema.gen";
import { ACTIVITY_NAMES, categoryOf } from "../model/activity";
import type { CubeData } from "../model/cube";
import { count, percent, quantity } from "../model/format";
import { useCube, useModel, useActivity, useParam, useSettled } from "../model/hooks";
import type { Selection } from "../model/time";
import { Loading, Panel, Pick, Seg, ViewHead } from "../widgets/basics";
import { type BarPart, type BarRow, BarRows } from "../widgets/bars";
import { PrefixName } from "../widgets/prefix-table";
import { DataTable } from "../widgets/table";
import { TimeRuler } from "../widgets/time-ruler";

interface Sum {
  context: string;
  prefix: string;
  activity: string;
  value: number;
}

const MOST = 20;
/** Parts of one colour side by side, in the order that is the same everywhere; labels of users last. */
const rank = (activity: string) => CATEGORIES.indexOf(categoryOf(activity) ?? "idle");

/** Sums of the selected time for one unit. */
function sums(cube: CubeData, selection: Selection, unit: string, prefix: string, span: string, category: Category | null): Sum[] {
  const { keys, codes, bin, measures } = cube;
  const u = keys.unit.indexOf(unit);
  const p = prefix === "" ? -1 : keys.prefix.indexOf(prefix);
  const s = span === "" ? -1 : keys.span.indexOf(span);
  const wanted = keys.activity.map((label) => !category || categoryOf(label) === category);
  const found = new Map<number, number>();
  const np = keys.prefix.length;
  const na = keys.activity.length;
  for (let row = 0; row < cube.rows; row++) {
    if (codes.unit[row] !== u || bin[row] < selection.b0 || bin[row] >= selection.b1) continue;
    if (!wanted[codes.activity[row]]) continue;
    if ((p >= 0 && codes.prefix[row] !== p) || (s >= 0 && codes.span[row] !== s)) continue;
    const key = (codes.context[row] * np + codes.prefix[row]) * na + codes.activity[row];
    found.set(key, (found.get(key) ?? 0) + measures.value[row]);
  }
  return [...found].map(([key, value]) => ({ activity: keys.activity[key % na], prefix: keys.prefix[Math.floor(key / na) % np], context: keys.context[Math.floor(key / na / np)], value }));
}

export function Fine() {
  const model = useModel();
  const selection = useSettled();
  const cube = useCube("activities");
  const keys = model.report.activities.keys;
  const units = keys.unit ?? [];
  const [unit, setUnit] = useParam("unit", units.includes("seconds") ? "seconds" : (units[0] ?? ""));
  const [prefix, setPrefix] = useParam("prefix");
  const [span, setSpan] = useParam("span");
  const activity = useActivity();
  const rows = useMemo(() => (cube ? sums(cube, selection, unit, prefix, span, activity) : null), [cube, selection.b0, selection.b1, unit, prefix, span, activity]);
  const spanName = new Map(model.report.spans.map((s) => [s.span, s.name]));
  return (
    <>
      <ViewHead title="Fine metrics" note="what workers measured while they executed, fetched and sent" />
      <TimeRuler />
      <Panel class="mt">
        <div class="filters" style="border-bottom:0">
          <Seg label="Unit" options={units.map((u) => [u, u || "no unit"] as const)} value={unit} onChange={setUnit} testid="unit-switch" />
          <Pick label="Function" all="all functions" options={(keys.prefix ?? []).filter(Boolean).map((p) => [p, p])} value={prefix} onChange={setPrefix} testid="fine-prefix" />
          <Pick label="Span" all="all spans" options={(keys.span ?? []).filter(Boolean).map((s) => [s, spanName.get(s) ?? s])} value={span} onChange={setSpan} />
          <Pick label="Activity" all="all activities" options={CATEGORIES.filter((c) => c !== "idle").map((c) => [c, ACTIVITY_NAMES[c]])} value={activity ?? ""} onChange={(c) => model.nav.pick(CATEGORIES.find((known) => known === c) ?? null)} testid="fine-activity" />
          {(prefix || span) && <button type="button" class="btn sm" onClick={() => model.nav.set({ prefix: undefined, span: undefined })}>Clear</button>}
        </div>
      </Panel>
      {!rows ? <Panel class="mt"><Loading /></Panel> : <Panels rows={rows} unit={unit} />}
    </>
  );
}

function Panels({ rows, unit }: { rows: Sum[]; unit: string }) {
  const execute = rows.filter((r) => r.context === "execute");
  const sending = rows.filter((r) => r.context === "get-data");
  const other = rows.filter((r) => r.context !== "get-data");
  return (
    <>
      <div class="cols mt">
        <Panel title="By function" note="while executing" class="c12">
          <Bars rows={execute.length > 0 ? execute : other} by="prefix" unit={unit} />
        </Panel>
        <Panel title="By activity" note="executing, fetching and the rest" class="c6">
          <Bars rows={other} by="activity" unit={unit} />
        </Panel>
        <Panel title="Send data" note="workers answering other workers" class="c6">
          <Bars rows={sending} by="activity" unit={unit} />
        </Panel>
      </div>
      <section class="panel mt" aria-label="All sums">
        <DataTable
          title="All sums" label="Sums by context, function and activity" name="fine-metrics" rows={rows} sort={{ id: "value", down: true }} rowKey={(r) => `${r.context}/${r.prefix}/${r.activity}`} compact
          columns={[
            { id: "context", head: "Context", value: (r) => r.context },
            { id: "prefix", head: "Function", value: (r) => r.prefix, cell: (r) => <span class="mono">{r.prefix}</span> },
            { id: "activity", head: "Activity", value: (r) => r.activity },
            { id: "value", head: unit || "value", num: true, value: (r) => r.value, cell: (r) => quantity(r.value, unit) },
          ]}
        />
      </section>
    </>
  );
}

function Bars({ rows, by, unit }: { rows: Sum[]; by: "prefix" | "activity"; unit: string }) {
  const total = rows.reduce((a, r) => a + r.value, 0);
  const grouped = Map.groupBy(rows, (r) => (by === "prefix" ? r.prefix : `${r.context}\0${r.activity}`));
  const lines = [...grouped].map(([key, members]) => ({ key, members, value: members.reduce((a, r) => a + r.value, 0) })).sort((a, b) => b.value - a.value);
  if (lines.length === 0) return <p class="callout">Nothing was measured in {unit || "any unit"} here.</p>;
  const shown = lines.slice(0, MOST).map(({ key, members, value }): BarRow => {
    const first = members[0];
    const look = (activity: string) => {
      const category = categoryOf(activity);
      return category ? { class: `a-${category}` } : { colour: "--cat-rest" };
    };
    const parts: BarPart[] = by === "activity"
      ? [{ key, value, title: `${first.activity}: ${quantity(value, unit)}`, ...look(first.activity) }]
      : members.sort((a, b) => rank(a.activity) - rank(b.activity) || b.value - a.value).map((m) => ({ key: m.activity, value: m.value, title: `${m.activity}: ${quantity(m.value, unit)}`, ...look(m.activity) }));
    return {
      key, parts, text: `${quantity(value, unit)}  ${percent(total ? value / total : 0)}`,
      name: by === "prefix" ? first.prefix ? <PrefixName prefix={first.prefix} /> : <span class="faint">no function</span> : <span title={`${first.context}: ${first.activity}`}>{first.activity} <span class="faint">{first.context}</span></span>,
    };
  });
  return (
    <>
      <BarRows rows={shown} most={lines[0].value} />
      <div class="pfoot">
        <span>{count(shown.length)} of {count(lines.length)} {by === "prefix" ? "functions" : "activities"}</span>
        <span class="push">{quantity(total, unit)} in all</span>
      </div>
    </>
  );
}
