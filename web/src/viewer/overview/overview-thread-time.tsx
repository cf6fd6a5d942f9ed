import { useState } from "preact/hooks";
import { ACTIVITY_NAMES } from "../../model/activity";
import { sumBy } from "../../model/cube";
import { useActivity, useFromCube, useModel } from "../../model/page/hooks";
import { counted, duration } from "../../model/text/format";
import { type Part, TimeBar } from "../../widgets/bars/time-bar";
import { Panel } from "../../widgets/basics";
import { Seg } from "../../widgets/controls/inputs";
import { Reasons } from "./overview-reasons";

type By = "activity" | "prefix" | "span";

export function ThreadTime() {
  const { report, nav } = useModel();
  const activity = useActivity();
  const [by, setBy] = useState<By>("activity");
  const { totals } = report;
  const choose = (key: string) => nav.filterActivity(report.split.find((s) => s.category === key)?.category ?? null);
  return (
    <Panel
      title="Thread time"
      note={
        <>
          <data data-quantity="thread-time">{duration(totals.thread_us)}</data> on{" "}
          <data data-quantity="threads">{counted(totals.threads, "thread")}</data>
        </>
      }
      right={
        <Seg
          label="Split thread time by"
          options={[
            ["activity", "Activity"],
            ["prefix", "Task prefix"],
            ["span", "Span"],
          ]}
          value={by}
          onChange={setBy}
          testid="split-switch"
        />
      }
    >
      {totals.thread_us === 0 ? (
        <p class="callout">No thread time recorded.</p>
      ) : by === "activity" ? (
        <TimeBar
          label="Thread time by activity"
          quantity="thread"
          chosen={activity}
          onChoose={choose}
          parts={report.split.map((s) => ({ key: s.category, label: s.label, us: s.us, class: `a-${s.category}` }))}
        />
      ) : (
        <ThreadTimeBy by={by} />
      )}
      {by === "activity" && totals.thread_us > 0 && <Reasons />}
      {activity && (
        <p class="callout" aria-live="polite">
          Times below include only <b>{ACTIVITY_NAMES[activity]}</b>.{" "}
          <button type="button" class="link" onClick={() => nav.filterActivity(null)}>
            Show all
          </button>
        </p>
      )}
    </Panel>
  );
}

function ThreadTimeBy({ by }: { by: "prefix" | "span" }) {
  const model = useModel();
  const { report } = model;
  const sums = useFromCube(
    by === "prefix" ? "time_by_prefix" : "time_by_span",
    (cube) => {
      const idle = sumBy(cube, by, "us", null, { category: cube.keys.category.indexOf("idle") });
      // Idle time has its own part of the bar.
      return { names: cube.keys[by], us: sumBy(cube, by, "us", null).map((us, i) => us - idle[i]) };
    },
    [by],
  );
  if (!sums) return <div style="height:92px" />;
  const spanName = new Map(report.spans.map((s) => [s.span, s.name]));
  const found = sums.names
    .map((name, i) => ({ name, us: sums.us[i] }))
    .filter((x) => x.us > 0)
    .sort((a, b) => b.us - a.us);
  const parts: Part[] = found.slice(0, 7).map(({ name, us }, i) => ({
    key: name,
    label: by === "prefix" ? name || "no prefix" : spanName.get(name) || name || "no span",
    us,
    colour: by === "prefix" ? model.colour(name) : `--cat-${i + 1}`,
    mono: by === "prefix",
  }));
  const rest = found.slice(7).reduce((a, x) => a + x.us, 0);
  if (rest > 0) parts.push({ key: "", label: `${found.length - 7} others`, us: rest, colour: "--cat-rest" });
  const idle = report.split.find((s) => s.category === "idle");
  if (idle) parts.push({ key: "\0idle", label: idle.label, us: idle.us, class: "a-idle" });
  return <TimeBar label={`Thread time by ${by === "prefix" ? "task prefix" : by}`} parts={parts} />;
}
