import type { FunctionComponent } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { switchTheme } from "../charts/theme";
import type { Model } from "../model/model";
import { ModelContext, ParamContext, useModel, useView } from "../model/page/hooks";
import type { View } from "../model/page/nav";
import { moment } from "../model/text/format";
import { COMMON_SHORTCUTS, type Dialog, HelpDialog, type Shortcut } from "../widgets/controls/topbar";
import { Toasts } from "../widgets/toast";
import { Bandwidth } from "./bandwidth";
import { Coffea } from "./coffea/coffea";
import { Errors } from "./errors/errors";
import { FineMetrics } from "./fine-metrics/fine-metrics";
import { Memory } from "./memory";
import { Overview } from "./overview/overview";
import { Profile } from "./profile";
import { Rail } from "./rail";
import { TaskGroups } from "./task-groups";
import { TaskStreamPage } from "./task-stream-page";
import { listenForKeys } from "./viewer-keys";
import { ViewerPalette } from "./viewer-palette";
import { type Frame, FrameContext, NO_FRAME, viewEntries, viewName } from "./views";
import { Workers } from "./workers/workers";

const PAGES: Record<View, FunctionComponent> = {
  overview: Overview,
  stream: TaskStreamPage,
  profile: Profile,
  fine: FineMetrics,
  memory: Memory,
  bandwidth: Bandwidth,
  workers: Workers,
  errors: Errors,
  groups: TaskGroups,
  coffea: Coffea,
};

interface ViewerProps {
  model: Model;
  main: preact.RefObject<HTMLElement | null>;
  /** Renders the content above the views; receives a function that opens a dialog. */
  children: (open: (dialog: Dialog) => void) => preact.ComponentChildren;
}

/** A page of its own with the views of a report and their navigation. */
export function Viewer({ model, main, children }: ViewerProps) {
  const dialogs = useState<Dialog>("");
  return (
    <>
      {children(dialogs[1])}
      <div class="shell" data-viewer>
        <ModelContext.Provider value={model}>
          <ModelRail />
        </ModelContext.Provider>
        <main id="main" ref={main} tabIndex={-1}>
          <Views model={model} dialogs={dialogs} />
        </main>
      </div>
      <Toasts />
    </>
  );
}

interface ViewsProps {
  model: Model;
  frame?: Frame;
  /** Opens the palette of the app, which then replaces the one of the viewer. */
  onPalette?: () => void;
  /** The open dialog and a function that opens another, if something outside opens them, too. */
  dialogs?: [Dialog, (change: Dialog | ((now: Dialog) => Dialog)) => void];
}

/** The views of a report with keyboard shortcuts and dialogs. */
export function Views({ model, frame = NO_FRAME, onPalette, dialogs }: ViewsProps) {
  const own = useState<Dialog>("");
  const [dialog, setDialog] = dialogs ?? own;
  // The close event comes late: the other dialog can be open by then.
  const closed = (which: Dialog) => setDialog((now) => (now === which ? "" : now));
  // With the commit, not after the paint: the app leaves keys to the views as soon as they are in the page.
  useLayoutEffect(
    () =>
      listenForKeys(model, (which) => (which === "palette" && onPalette ? onPalette() : setDialog(which)), switchTheme),
    [model],
  );
  return (
    <ModelContext.Provider value={model}>
      <ParamContext.Provider value={model.nav}>
        <FrameContext.Provider value={frame}>
          <Content />
        </FrameContext.Provider>
        {!onPalette && (
          <ViewerPalette
            open={dialog === "palette"}
            onClose={() => closed("palette")}
            onHelp={() => setDialog("help")}
          />
        )}
        <ViewerHelp open={dialog === "help"} onClose={() => closed("help")} />
      </ParamContext.Provider>
    </ModelContext.Provider>
  );
}

function ModelRail() {
  const { report, nav } = useModel();
  return <Rail report={report} view={useView()} href={(view) => nav.href(view)} go={(view) => nav.go(view)} />;
}

function Content() {
  const model = useModel();
  const view = useView();
  const Page = PAGES[view];
  useEffect(() => {
    document.title = `${view === "overview" ? "" : `${viewName(view)} · `}${model.report.title} · daskscope`;
    if (view !== "overview" && view !== "stream") document.documentElement.dataset.ready = "1";
    if (model.report.stream.bars === 0) document.documentElement.dataset.ready = "1";
  }, [view, model]);
  return (
    <>
      <div data-testid={`view-${view}`} key={view}>
        <Page />
      </div>
      <p class="printfoot">
        {location.href} · created {moment(model.report.made_us)} by {model.report.generator} · {model.report.statement}
      </p>
    </>
  );
}

const KEYS: readonly Shortcut[] = [
  [["W", "S"], "Zoom in and out"],
  [["A", "D"], "Move earlier or later"],
  [["↑", "↓", "←", "→"], "In the time ruler: zoom and move. In other charts: next task, value or frame"],
  [["Enter"], "Open the task or zoom into the frame"],
  [["Ctrl", "wheel"], "Zoom the task stream at the pointer"],
  [["Esc"], "Close the dialog, then the item, the activity filter, the time selection"],
  [["[", "]"], "Previous and next item"],
];

function ViewerHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { report } = useModel();
  const views = viewEntries(report).map((e): Shortcut => [["G", e.key.toUpperCase()], e.name]);
  return <HelpDialog shortcuts={[...KEYS, ...COMMON_SHORTCUTS, ...views]} open={open} onClose={onClose} />;
}
