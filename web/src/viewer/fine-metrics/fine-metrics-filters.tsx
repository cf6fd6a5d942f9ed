import { activityName, joinList, splitList, unitsOf } from "../../model/fine-metrics";
import { useCube, useModel, useParam } from "../../model/page/hooks";
import { Pick, Seg } from "../../widgets/controls/inputs";
import { MultiPick } from "../../widgets/controls/popover";

/** The filters of the page, stored in the URL. */
export function useFilters() {
  const units = useModel().report.activities.keys.unit ?? [];
  const [unit, setUnit] = useParam("unit", units.includes("seconds") ? "seconds" : (units[0] ?? ""));
  const [prefix, setPrefix] = useParam("prefix");
  const [label, setLabel] = useParam("label");
  const [span, setSpan] = useParam("span");
  const [internal, setInternal] = useParam("internal");
  return {
    unit,
    setUnit,
    prefix,
    prefixes: splitList(prefix),
    setPrefixes: (next: string[]) => setPrefix(joinList(next)),
    label,
    labels: splitList(label),
    setLabels: (next: string[]) => setLabel(joinList(next)),
    span,
    setSpan,
    internal: internal === "1",
    setInternal: (on: boolean) => setInternal(on ? "1" : ""),
  };
}

type Filters = ReturnType<typeof useFilters>;

/** `activities` are the labels to choose from. */
export function FilterBar({ filters: f, activities }: { filters: Filters; activities: readonly string[] }) {
  const { report, nav } = useModel();
  const { keys } = report.activities;
  const cube = useCube("activities");
  const units = cube ? unitsOf(cube, f.internal) : (keys.unit ?? []).filter(Boolean);
  const spanName = new Map(report.spans.map((s) => [s.span, s.name]));
  return (
    <div class="filters" style="border-bottom:0">
      <Seg
        label="Unit"
        options={units.map((u) => [u, u || "no unit"] as const)}
        value={f.unit}
        onChange={f.setUnit}
        testid="unit-switch"
      />
      <MultiPick
        label="Prefix"
        noun="prefixes"
        options={(keys.prefix ?? []).filter(Boolean)}
        chosen={f.prefixes}
        onChange={f.setPrefixes}
        testid="fine-prefix"
      />
      <MultiPick
        label="Activity"
        noun="activities"
        options={activities}
        nameOf={(activity) => activityName(activity)}
        chosen={f.labels}
        onChange={f.setLabels}
        testid="fine-activity"
      />
      <Pick
        label="Span"
        all="all spans"
        options={(keys.span ?? []).filter(Boolean).map((s) => [s, spanName.get(s) ?? s])}
        value={f.span}
        onChange={f.setSpan}
      />
      {(f.prefix || f.label || f.span) && (
        <button
          type="button"
          class="btn sm"
          onClick={() => nav.set({ prefix: undefined, label: undefined, span: undefined })}
        >
          Clear filters
        </button>
      )}
      <label class="lab">
        <input
          type="checkbox"
          checked={f.internal}
          data-testid="fine-internal"
          onChange={(e) => f.setInternal(e.currentTarget.checked)}
        />
        Show Dask's internal metrics
      </label>
    </div>
  );
}
