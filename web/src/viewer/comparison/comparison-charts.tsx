import type { ComparedChange, Comparison } from "../../api/schema.gen";
import { CATEGORY_LABELS } from "../../model/comparison";
import { counted, duration } from "../../model/text/format";
import { tickStep } from "../../model/time";
import { Panel } from "../../widgets/basics";

/** The durations of all runs: one row of dots for each side, on one axis from zero. */
export function DurationDots({ comparison: c }: { comparison: Comparison }) {
  const longest = Math.max(1, ...c.walls_before, ...c.walls_after) * 1.04;
  const at = (us: number) => `${(us / longest) * 100}%`;
  const step = tickStep(longest, 6);
  const ticks = Array.from({ length: Math.floor(longest / step) + 1 }, (_, i) => i * step);
  const side = (name: string, runs: readonly number[], change: number | null, kind: string) => (
    <div class={`dotrow ${kind}`} data-testid={`dots-${kind}`}>
      <span>
        {name} <small>median {duration(change ?? 0)}</small>
      </span>
      <div
        class="dots"
        role="img"
        aria-label={`${name}: ${counted(runs.length, "run")}, ${runs.map((us) => duration(us)).join(", ")}`}
      >
        <i class="range" style={{ left: at(Math.min(...runs)), right: `calc(100% - ${at(Math.max(...runs))})` }} />
        {runs.map((us, i) => (
          <i class="dot" key={i} style={{ left: at(us) }} title={duration(us)} />
        ))}
        <i class="median" style={{ left: at(change ?? 0) }} />
      </div>
    </div>
  );
  return (
    <Panel title="Duration" note="One dot is one run, the line is the median" class="mt" testid="duration-dots">
      <div class="dotrows">
        {side("Before", c.walls_before, c.wall.before, "before")}
        {side("After", c.walls_after, c.wall.after, "after")}
        <div class="dotrow axis" aria-hidden="true">
          <span />
          <div class="dots">
            {ticks.map((us) => (
              <small key={us} style={{ left: at(us) }}>
                {us === 0 ? "0" : duration(us)}
              </small>
            ))}
          </div>
        </div>
      </div>
    </Panel>
  );
}

const MAX_CHANGES = 12;

/** One line of the bars: thread time of a prefix, of the idle threads, or of all. */
export interface ThreadChange {
  name: string;
  before: number;
  after: number;
}

/** Return the thread time before and after by prefix, the largest change first, then the others, idle time, and the sum of all. */
export function threadChanges({ prefixes, thread_us }: Pick<Comparison, "prefixes" | "thread_us">): ThreadChange[] {
  const change = (name: string, { before, after }: Pick<ComparedChange, "before" | "after">): ThreadChange => ({
    name,
    before: before ?? 0,
    after: after ?? 0,
  });
  const all = prefixes
    .map((p) => change(p.prefix, p.total_us))
    .sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));
  const rest = all.slice(MAX_CHANGES);
  const idle = thread_us.find((t) => t.name === "idle");
  const rows = [
    ...all.slice(0, MAX_CHANGES),
    ...(rest.length > 0 ? [sum(counted(rest.length, "other prefix", "other prefixes"), rest)] : []),
    ...(idle ? [change(CATEGORY_LABELS.idle, idle)] : []),
  ];
  return [...rows, sum("Together", rows)];
}

function sum(name: string, rows: readonly ThreadChange[]): ThreadChange {
  const add = (side: "before" | "after") => rows.reduce((total, row) => total + row[side], 0);
  return { name, before: add("before"), after: add("after") };
}

const signed = (us: number) => (us === 0 ? "0 s" : `${us > 0 ? "+" : "−"}${duration(Math.abs(us))}`);

/** Seconds of thread time that each prefix takes more or less than before. */
export function ThreadChanges({ comparison }: { comparison: Comparison }) {
  const rows = threadChanges(comparison);
  const most = Math.max(1, ...rows.slice(0, -1).map((row) => Math.abs(row.after - row.before)));
  return (
    <Panel
      title="Thread time changed by prefix"
      note="medians of a run: computing, and idle threads"
      class="c8"
      testid="thread-changes"
    >
      <ul class="changes">
        {rows.map((row, i) => {
          const moved = row.after - row.before;
          const share = `${(Math.abs(moved) / most) * 50}%`;
          return (
            <li key={row.name} class={i === rows.length - 1 ? "sum" : ""} data-testid="thread-change">
              <span class="mono cut" title={row.name}>
                {row.name}
              </span>
              <span class="b">
                {i < rows.length - 1 && (
                  <i
                    class={moved > 0 ? "more" : "less"}
                    style={{ left: moved > 0 ? "50%" : undefined, right: moved > 0 ? undefined : "50%", width: share }}
                  />
                )}
              </span>
              <b>{signed(moved)}</b>
              <span class="faint hide-n">
                {duration(row.before)} → {duration(row.after)}
              </span>
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}
