import type { ComponentChildren } from "preact";
import { useContext, useEffect, useMemo } from "preact/hooks";
import type { OneComputation } from "../../api/server.gen";
import type { LiveRun } from "../../model/live/live-run";
import type { Model, PrefixOrder } from "../../model/model";
import { ModelContext, ParamContext, useParam } from "../../model/page/hooks";
import { ago, clock, count, counted } from "../../model/text/format";
import { Loading, Panel } from "../../widgets/basics";
import { Seg } from "../../widgets/controls/inputs";
import { FlamePanel } from "../../widgets/flame/flame-panel";
import type { LiveModel } from "../../widgets/live/live-model";
import { useLiveRun } from "../../widgets/live/use-live-run";
import { MemoryPanel } from "../../widgets/memory/memory-panel";
import { StreamPanel } from "../../widgets/stream/stream-panel";
import { TimeRuler } from "../../widgets/stream/time-ruler";
import { ShortTable } from "../../widgets/table/card-table";
import { PrefixTable } from "../../widgets/table/prefix-table";
import { Ago } from "../parts/time-text";
import { OpenView, useTeam } from "../shell/context";
import { Link } from "../shell/link";
import type { RunTotals } from "./cluster-text";

/** Windows that a page can follow: name, seconds (0 for the whole run) and title. */
const WINDOWS = {
  "30s": { seconds: 30, label: "30 s", title: "Last 30 seconds" },
  "2min": { seconds: 120, label: "2 min", title: "Last 2 minutes" },
  "10min": { seconds: 600, label: "10 min", title: "Last 10 minutes" },
  all: { seconds: 0, label: "All", title: "Whole run so far" },
} as const;
type WindowName = keyof typeof WINDOWS;
const LABELS = Object.entries(WINDOWS).map(([name, { label }]) => [name as WindowName, label] as const);

/** Return the window that the reader chose; else two minutes, or the whole run if nothing has run in them. */
export function windowOf(chosen: string, idleUs: number): WindowName {
  if (Object.hasOwn(WINDOWS, chosen)) return chosen as WindowName;
  return idleUs > 1e6 * WINDOWS["2min"].seconds ? "all" : "2min";
}

interface Props {
  cluster: string;
  /** Only tasks of this computation, and the time since it began. */
  computation?: Pick<OneComputation, "id" | "start">;
  order: PrefixOrder;
  /** Called when the run has ended. */
  onEnd: () => void;
  /** Called with the sums of the run whenever they are new: the page around shows the same ones. */
  onTotals?: (totals: RunTotals) => void;
}

/** A run while it goes on: the panels of its document, which follow it. */
export function LiveView({ cluster, computation, order, onEnd, onTotals }: Props) {
  const { api, account } = useTeam();
  const { live, problem } = useLiveRun(
    (cursor, wait) =>
      api.url(`clusters/${encodeURIComponent(cluster)}/increments`, { cursor, wait, computation: computation?.id }),
    order,
    [cluster, computation?.id, account],
    computation?.start ? 1000 * Date.parse(computation.start) : 0,
  );
  const { model, run } = live;
  const hasEnded = model !== null && !run.isLive;
  useEffect(() => {
    if (hasEnded) onEnd();
  }, [hasEnded]);
  useEffect(() => {
    if (model) onTotals?.(model.report.totals);
  }, [model]);
  const [chosen, choose] = useParam("window");
  const name = windowOf(chosen, model ? live.idleUs : 0);
  const { seconds, title } = WINDOWS[name];
  const shown = model?.nav.state.selection;
  const isShort = shown !== undefined && shown.t1 - shown.t0 < 1e6 * (seconds - 1);
  const follow = () => live.follow(seconds, performance.now());
  useEffect(follow, [live, seconds]);
  // "Whole run" in the ruler does not pause: the whole run is what has been so far.
  const wantsAll = live.isPaused && model?.nav.state.selection.whole;
  useEffect(() => {
    if (!wantsAll) return;
    if (name === "all") follow();
    else choose("all");
  }, [wantsAll]);
  useOpenedViews(model);
  // Before the first increment nothing is known, so nothing is said: shapes, and no zeros.
  return (
    <div class={model && problem ? "live stale" : "live"} data-testid="live">
      <div class="section">
        <h2>{live.isPaused ? "Selected time" : isShort ? WINDOWS.all.title : title}</h2>
        <LiveStatus live={live} problem={problem} follow={follow} />
        <span class="push">
          <Seg
            label="Shown time"
            options={LABELS}
            value={name}
            testid="live-window"
            onChange={(next) => (next === name ? follow() : choose(next))}
          />
        </span>
      </div>
      {model ? (
        <LivePanels model={model} run={computation ? null : run} />
      ) : (
        !problem && (
          <Panel testid="live-loading">
            <Loading lines={12} />
          </Panel>
        )
      )}
    </div>
  );
}

/** Open the view that a panel leads to: its document is another part of the page. */
function useOpenedViews(model: Model | null): void {
  const open = useContext(OpenView);
  const nav = model?.nav;
  useEffect(() => {
    if (!nav) return;
    return nav.subscribe(() => {
      const { view, params } = nav.state;
      if (view !== "overview") open(nav.href(view, params));
    });
  }, [nav]);
}

/** The panels of a document. They change with the model, and not whenever the page does. Errors are known of whole clusters. */
function LivePanels({ model, run }: { model: Model; run: LiveRun | null }) {
  return useMemo(
    () => (
      <ModelContext.Provider value={model}>
        <ParamContext.Provider value={model.nav}>
          <TimeRuler joined />
          <StreamPanel maxHeight={440} />
          {run && <LiveErrors run={run} />}
          <div class="cols mt">
            <FlamePanel class="c7" />
            <MemoryPanel class="c5" />
          </div>
          <div class="mt">
            <PrefixTable />
          </div>
        </ParamContext.Provider>
      </ModelContext.Provider>
    ),
    [model],
  );
}

/** Whether the picture follows, is paused, or has lost the server. */
function LiveStatus({ live, problem, follow }: { live: LiveModel; problem: string; follow: () => void }) {
  const { model, run, isPaused } = live;
  let text: ComponentChildren;
  if (problem)
    text = (
      <b role="alert" class="warn">
        {problem} {model && <LastData run={run} />}
      </b>
    );
  else if (!model) text = "Loading.";
  else if (isPaused) {
    const { t0, t1 } = model.nav.state.selection;
    text = (
      <>
        <b>
          Paused at {clock(t0, 1e5)} to {clock(t1, 1e5)}.
        </b>{" "}
        {counted(live.missed, "task")} finished since.
      </>
    );
  } else if (!run.isLive) text = "The cluster no longer runs.";
  else text = `Following now.${updatedText(live.silentUs)} Select a time to pause.`;
  return (
    <>
      <span class="note" data-testid="live-status">
        {text}
      </span>
      {isPaused ? (
        <button type="button" class="btn sm" onClick={follow} data-testid="back-to-live">
          Back to now
        </button>
      ) : (
        model &&
        run.isLive && (
          <button type="button" class="link" onClick={() => live.pause()} data-testid="live-pause">
            Pause
          </button>
        )
      )}
    </>
  );
}

/** A scheduler with work sends something every few seconds; an idle one may be silent for 30 s. */
const SILENT_US = 10e6;

/** How old the newest rows are, if that is more than the page needs to follow; starts with a space. */
export function updatedText(silentUs: number): string {
  return silentUs >= SILENT_US ? ` Updated ${ago(silentUs)}.` : "";
}

/** How old the shown data is. */
function LastData({ run }: { run: LiveRun }) {
  const at = new Date((run.originUs + run.latest) / 1000).toISOString();
  return (
    <>
      Showing data from <Ago at={at} now="a moment ago" />.
    </>
  );
}

const MAX_ERRORS = 12;

function LiveErrors({ run }: { run: LiveRun }) {
  const { account } = useTeam();
  const errors = [...run.errors.values()].reverse();
  if (errors.length === 0) return null;
  return (
    <Panel title="Errors" note={`in the last ${counted(run.window / 60, "minute")}`} class="mt" testid="live-errors">
      <ShortTable
        class="compact"
        rows={errors.slice(0, MAX_ERRORS)}
        keyOf={(error) => error.fingerprint}
        columns={[
          [
            "Error",
            (error) => (
              <>
                <Link to={[account, "errors", error.fingerprint]}>{error.type || "Unnamed error"}</Link>{" "}
                <span class="faint cut">{error.message.slice(0, 160)}</span>
              </>
            ),
          ],
          ["Prefix", (error) => error.prefix, "mono"],
          ["Failures", (error) => count(error.count), "num"],
          ["Last", (error) => <Ago at={new Date(error.time_us / 1000).toISOString()} />, "num"],
        ]}
      />
    </Panel>
  );
}
