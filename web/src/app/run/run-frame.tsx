import type { ComponentChildren } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Answer } from "../../api/schema.gen";
import type { PrefixOrder } from "../../model/model";
import { ParamContext } from "../../model/page/hooks";
import { VIEWS, type View } from "../../model/page/nav";
import { Rail } from "../../viewer/rail";
import type { RunHistory } from "../../viewer/views";
import { Failed, Panel } from "../../widgets/basics";
import { Ago } from "../parts/time-text";
import { OpenView, PaletteContext, useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { Building } from "./building";
import type { LiveView } from "./live-view";
import { useDocument } from "./use-document";

/** The view in the URL. The hash belongs to the run: the path says which run it is. */
function viewInUrl(): View {
  const name = location.hash.replace(/^#\/?/, "").split("?")[0];
  return VIEWS.find((view) => view === name) ?? "overview";
}

interface Props {
  /** Breadcrumb, title and buttons, above every view. */
  head: ComponentChildren;
  /** Whether the head has the title and the state of the run; otherwise the overview shows them. */
  titled?: boolean;
  /** The overview while the run goes on; null once it has ended. */
  live?: ComponentChildren;
  /** Other runs of the same name or code. */
  history?: RunHistory | null;
  /** Panels at the end of the overview. */
  below?: ComponentChildren;
  /** Replaces the headline of the document. */
  answer?: Answer | null;
  /** Where the document of the run is. */
  address: string;
  /** The order of prefixes in the whole cluster; by default the order in the document. */
  order?: PrefixOrder;
  /** Number of tasks, which tells how long building the document takes. */
  tasks?: number;
}

/** The page of a cluster, a computation or a report: the views of its document, and an overview that follows a run. */
export function RunFrame(props: Props) {
  const {
    head,
    titled = true,
    live = null,
    below = null,
    history = null,
    answer = null,
    address,
    order,
    tasks = 0,
  } = props;
  const [view, setView] = useState(viewInUrl);
  const { router } = useTeam();
  const isFollowing = live !== null && view === "overview";
  const { loaded, problem, reload } = useDocument({ address: isFollowing ? "" : address, live: live !== null, order });
  const nav = loaded?.model.nav;
  const palette = useContext(PaletteContext);
  useEffect(() => {
    palette?.show(loaded?.model ?? null);
    return () => palette?.show(null);
  }, [loaded?.model]);
  useEffect(() => {
    const onPop = () => setView(viewInUrl());
    addEventListener("popstate", onPop);
    return () => removeEventListener("popstate", onPop);
  }, []);
  useEffect(() => nav?.subscribe(() => setView(nav.state.view)), [nav]);
  const open = (hash: string) => {
    window.history.pushState(null, "", hash);
    scrollTo(0, 0);
    setView(viewInUrl());
  };
  const go = (next: View) => (nav ? nav.go(next) : open(`#${next}`));
  // Tables and charts of the app keep their settings in the query, also among the views, which use the hash.
  const inApp = <ParamContext.Provider value={router}>{below}</ParamContext.Provider>;
  return (
    <div class="shell" data-viewer={loaded ? "" : undefined}>
      <Rail report={loaded?.model.report ?? null} view={view} href={(next) => nav?.href(next) ?? `#${next}`} go={go} />
      <main id="main">
        <div class="runhead">{head}</div>
        {loaded?.incomplete && (
          <div class="asof" data-testid="as-of">
            <span>
              {live ? "Still running." : "Ended since."} This view was made <Ago at={loaded.made} now="just now" />.
            </span>{" "}
            <button type="button" class="link" onClick={reload}>
              Refresh
            </button>
          </div>
        )}
        {isFollowing ? (
          <OpenView.Provider value={open}>{live}</OpenView.Provider>
        ) : loaded ? (
          <loaded.code.Views
            onPalette={palette?.open}
            model={loaded.model}
            frame={{ titled, below: inApp, history, answer }}
          />
        ) : problem ? (
          <Panel>
            <Failed message={problem} />
          </Panel>
        ) : (
          <Building tasks={tasks} />
        )}
      </main>
    </div>
  );
}

/** The live view, which has its own file: most clusters that people open have ended. */
export function LazyLiveView(props: Parameters<typeof LiveView>[0]) {
  const code = useResource(() => import("./live-view"), []);
  return <Loaded from={code}>{(loaded) => <loaded.LiveView {...props} />}</Loaded>;
}
