import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useParam } from "../../model/page/hooks";
import { clock, count, counted } from "../../model/text/format";
import { Loading, Swatch } from "../../widgets/basics";
import { Seg } from "../../widgets/controls/inputs";
import { LiveCharts } from "../../widgets/live/live-charts";
import { LiveStream, liveColour } from "../../widgets/live/live-stream";
import { type LiveRangeState, useLiveRange, WINDOWS, type WindowName } from "../../widgets/live/use-live-range";
import { type LiveFeed, useLiveRun } from "../../widgets/live/use-live-run";
import { useTeam } from "../shell/context";
import { LiveDetails } from "./live-details";

const MAX_PREFIXES = 7;
const LABELS: readonly (readonly [WindowName, string])[] = [
  ["30s", "30 s"],
  ["2min", "2 min"],
  ["10min", "10 min"],
  ["all", "All"],
];

interface Props {
  cluster: string;
  /** Only tasks of this computation. */
  computation?: string;
  /** Called when the run has ended. */
  onEnd: () => void;
}

/** A running cluster, as it runs: task stream, busy threads, memory, finished tasks and transfers of the last seconds. */
export function LiveView({ cluster, computation = "", onEnd }: Props) {
  const { api, account } = useTeam();
  const feed = useLiveRun(
    (cursor, wait) => api.url(`clusters/${encodeURIComponent(cluster)}/increments`, { cursor, wait, computation }),
    [cluster, computation, account],
  );
  const { run, version } = feed;
  const hasEnded = version > 0 && !run.isLive;
  useEffect(() => {
    if (hasEnded) onEnd();
  }, [hasEnded]);
  const [chosen, choose] = useParam("window", "2min");
  const name: WindowName = chosen in WINDOWS ? (chosen as WindowName) : "2min";
  const range = useLiveRange(run, version, name);
  return (
    <div class="stack live" data-testid="live">
      <section class="panel streampanel" aria-label="Live task stream">
        <div class="phead">
          <h2>Task stream</h2>
          <LiveLegend names={run.prefixes} />
          <div class="right">
            <Seg
              label="Shown time"
              options={LABELS}
              value={name}
              testid="live-window"
              onChange={(value) => {
                range.resume();
                choose(value);
              }}
            />
          </div>
        </div>
        {version === 0 && !feed.problem ? (
          <Loading lines={6} />
        ) : run.lanes.lanes.length === 0 ? (
          <p class="callout">No task has finished in the last {counted(run.window / 60, "minute")}.</p>
        ) : (
          <LiveStream run={run} version={version} range={range} maxHeight={420} onSelect={range.pause} />
        )}
        <LiveStatus feed={feed} range={range} />
      </section>
      <LiveCharts run={run} version={version} range={range} />
      <LiveDetails run={run} version={version} range={range} />
    </div>
  );
}

function LiveLegend({ names }: { names: readonly string[] }) {
  return (
    <ul class="keylist">
      {names.slice(0, MAX_PREFIXES).map((name, i) => (
        <li key={name}>
          <Swatch colour={liveColour(i)} />
          <span class="mono">{name}</span>
        </li>
      ))}
      {names.length > MAX_PREFIXES && <li class="faint">{count(names.length - MAX_PREFIXES)} more</li>}
    </ul>
  );
}

/** Whether the picture follows, is paused, or has lost the server. */
function LiveStatus({ feed, range }: { feed: LiveFeed; range: LiveRangeState }) {
  const { run, problem } = feed;
  let text: ComponentChildren;
  if (problem) text = <b role="alert">{problem}</b>;
  else if (range.isPaused)
    text = (
      <>
        <b>
          Paused at {clock(range.t0, 1e5)} to {clock(range.t1, 1e5)}.
        </b>{" "}
        {counted(range.missed, "task")} finished since.
      </>
    );
  else if (!run.isLive) text = "The cluster no longer runs.";
  else text = "Live. Drag over the tasks to select a time.";
  return (
    <div class={problem ? "pfoot warn" : "pfoot"} data-testid="live-status">
      <span>{text}</span>
      {run.leftOut > 0 && <span>{counted(run.leftOut, "task")} not shown; sums include them.</span>}
      {range.isPaused ? (
        <button type="button" class="btn sm push" onClick={range.resume} data-testid="back-to-live">
          Back to live
        </button>
      ) : (
        run.isLive && (
          <button
            type="button"
            class="link push"
            onClick={() => range.pause(range.t0, range.t1)}
            data-testid="live-pause"
          >
            Pause
          </button>
        )
      )}
    </div>
  );
}
