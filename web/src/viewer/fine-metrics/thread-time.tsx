import type { Category, Share } from "../../api/schema.gen";
import { type BinRange, type CubeData, total } from "../../model/cube";
import { useCube, useModel, useSettledSelection } from "../../model/page/hooks";
import { part } from "../../model/quantity";
import { duration, shares } from "../../model/text/format";
import { BarRows } from "../../widgets/bars/bar-rows";
import { Loading, Panel } from "../../widgets/basics";
import { reasonsIn } from "../overview/overview-reasons";

interface Row {
  key: string;
  label: string;
  category: Category;
  us: number;
  share: string;
  /** Names its time or its share. */
  path: (whole: string) => string;
}

/** Return the activities with time, and the reasons of idle time. Shares are rounded as in the bar of the overview. */
export function threadTimeRows(split: readonly Share[], time: CubeData, idle: CubeData, range: BinRange): Row[] {
  const us = split.map((s) => total(time, "us", range, { category: time.keys.category.indexOf(s.category) }));
  const texts = shares(us);
  return split.flatMap(({ category, label, reasons }, i): Row[] => {
    if (us[i] === 0) return [];
    const path = (whole: string) => part(whole, "activity", category);
    if (category !== "idle") return [{ key: category, label, category, us: us[i], share: texts[i], path }];
    const found = reasonsIn(idle, reasons, range);
    const parts = shares(
      found.map((r) => r.us),
      Number.parseFloat(texts[i].replace("<", "")),
    );
    return found.map((r, k) => ({
      key: r.reason,
      label: `Idle: ${r.label.toLowerCase()}`,
      category,
      us: r.us,
      share: parts[k],
      path: (whole: string) => part(path(whole), "reason", r.reason),
    }));
  });
}

/** Thread time in the selected time: by activity, and idle time by reason. It adds up to worker threads × their uptime. */
export function ThreadTimeInSelection() {
  const { report } = useModel();
  const selection = useSettledSelection();
  const time = useCube("time_by_prefix");
  const idle = useCube("idle_by_reason");
  if (!time || !idle)
    return (
      <Panel class="mt">
        <Loading />
      </Panel>
    );
  const shown = threadTimeRows(report.split, time, idle, selection);
  const all = shown.reduce((sum, r) => sum + r.us, 0);
  const pause = shown.find((r) => r.key === "nothing submitted")?.us ?? 0;
  const quantity = (name: string) => (selection.whole ? name : undefined);
  return (
    <Panel
      title="Thread time"
      note="worker threads × their uptime"
      class="mt"
      testid="thread-time"
      foot={
        <>
          <span>
            <data data-quantity={quantity("thread-time")}>{duration(all)}</data> in total
          </span>
          {pause > 0 && <span>{duration(all - pause)} of it while there was work</span>}
        </>
      }
    >
      {shown.length === 0 ? (
        <p class="callout">No thread time in the selected time.</p>
      ) : (
        <BarRows
          max={all}
          rows={shown.map((r) => ({
            key: r.key,
            name: r.label,
            text: (
              <>
                <data data-quantity={quantity(r.path("thread-time"))}>{duration(r.us)}</data>
                {"  "}
                <data data-quantity={quantity(r.path("thread-share"))}>{r.share}</data>
              </>
            ),
            parts: [{ key: r.key, value: r.us, class: `a-${r.category}`, title: `${r.label}: ${duration(r.us)}` }],
          }))}
        />
      )}
    </Panel>
  );
}
