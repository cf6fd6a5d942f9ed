import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { switchTheme } from "../charts/theme";
import type { Model } from "../model/model";
import { ModelContext, ParamContext, useModel, useView } from "../model/page/hooks";
import type { View } from "../model/page/nav";
import { count, moment } from "../model/text/format";
import { Icon } from "../widgets/icon";
import { Toasts } from "../widgets/toast";
import { Bandwidth } from "./bandwidth";
import { Code } from "./code";
import { Coffea } from "./coffea/coffea";
import { CriticalPath } from "./critical-path";
import { EnvironmentView } from "./environment";
import { Errors } from "./errors/errors";
import { Events } from "./events";
import { FineMetrics } from "./fine-metrics/fine-metrics";
import { Memory } from "./memory";
import { Overview } from "./overview/overview";
import { Profile } from "./profile";
import { Tables } from "./tables";
import { TaskGroups } from "./task-groups";
import { TaskStreamPage } from "./task-stream-page";
import { listenForKeys } from "./viewer-keys";
import { ViewerPalette } from "./viewer-palette";
import { viewEntries, viewGroups, viewName } from "./views";
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
  code: Code,
  groups: TaskGroups,
  events: Events,
  path: CriticalPath,
  environment: EnvironmentView,
  tables: Tables,
  coffea: Coffea,
};

type Dialog = "" | "help" | "palette";

interface ViewerProps {
  model: Model;
  main?: preact.RefObject<HTMLElement | null>;
  /** Renders the content above the viewer; receives a function that opens a dialog. */
  children?: (open: (dialog: Dialog) => void) => preact.ComponentChildren;
}

/** The views of a report with navigation, keyboard shortcuts and dialogs. */
export function Viewer({ model, main, children }: ViewerProps) {
  const [dialog, setDialog] = useState<Dialog>("");
  // The close event comes late: the other dialog can be open by then.
  const closed = (which: Dialog) => setDialog((now) => (now === which ? "" : now));
  useEffect(() => listenForKeys(model, setDialog, switchTheme), [model]);
  return (
    <ModelContext.Provider value={model}>
      <ParamContext.Provider value={model.nav}>
        {children?.(setDialog)}
        <div class="shell" data-viewer>
          <Rail />
          <Content main={main} />
        </div>
        <ViewerPalette open={dialog === "palette"} onClose={() => closed("palette")} onHelp={() => setDialog("help")} />
        <ViewerHelp open={dialog === "help"} onClose={() => closed("help")} />
        {children && <Toasts />}
      </ParamContext.Provider>
    </ModelContext.Provider>
  );
}

function Content({ main }: { main?: preact.RefObject<HTMLElement | null> }) {
  const model = useModel();
  const view = useView();
  const Page = PAGES[view];
  useEffect(() => {
    document.title = `${view === "overview" ? "" : `${viewName(view)} · `}${model.report.title} · daskscope`;
    if (view !== "overview" && view !== "stream") document.documentElement.dataset.ready = "1";
    if (model.report.stream.bars === 0) document.documentElement.dataset.ready = "1";
  }, [view, model]);
  return (
    <main id="main" ref={main} tabIndex={-1}>
      <div data-testid={`view-${view}`} key={view}>
        <Page />
      </div>
      <p class="printfoot">
        {location.href} · created {moment(model.report.made_us)} by {model.report.generator} · {model.report.statement}
      </p>
    </main>
  );
}

function Rail() {
  const model = useModel();
  const view = useView();
  const { report } = model;
  const counts: Partial<Record<View, number>> = {
    workers: report.workers.length,
    errors: report.errors.length,
    groups: report.groups.length,
    events: report.events_of,
    code: report.computations.length,
  };
  return (
    <nav class="rail" aria-label="Views">
      <div class="inner">
        {viewGroups(report).map(([title, views]) => (
          <RailGroup key={title} title={title}>
            {views.map(({ view: v, name, icon }) => (
              <a
                key={v}
                href={model.nav.href(v)}
                aria-current={v === view ? "page" : undefined}
                data-testid={`nav-${v}`}
                onClick={(e) => {
                  if (e.ctrlKey || e.metaKey || e.shiftKey) return;
                  e.preventDefault();
                  model.nav.go(v);
                }}
              >
                <Icon name={icon} />
                {name}
                {counts[v] ? <span class={v === "errors" ? "n bad" : "n"}>{count(counts[v])}</span> : null}
              </a>
            ))}
          </RailGroup>
        ))}
        <div class="foot">{report.statement}</div>
      </div>
    </nav>
  );
}

function RailGroup({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return (
    <>
      <h2>{title}</h2>
      {children}
    </>
  );
}

const KEYS: readonly (readonly [string[], string])[] = [
  [["W", "S"], "Zoom in and out"],
  [["A", "D"], "Move earlier or later"],
  [["↑", "↓", "←", "→"], "In the time ruler: zoom and move. In other charts: next task, value or frame"],
  [["Enter"], "Open the task or zoom into the frame"],
  [["Ctrl", "wheel"], "Zoom the task stream at the pointer"],
  [["Esc"], "Close the dialog, then the item, the activity filter, the time selection"],
  [["/"], "Search (also Ctrl K)"],
  [["[", "]"], "Previous and next item"],
  [["T"], "Switch theme"],
  [["?"], "Keyboard shortcuts"],
];

function ViewerHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { report } = useModel();
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal();
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  return (
    <dialog ref={ref} onClose={onClose} aria-labelledby="help-title" data-testid="help">
      <div class="help">
        <h2 id="help-title">Keyboard shortcuts</h2>
        <dl>
          {KEYS.map(([keys, text]) => (
            <ShortcutRow key={text} keys={keys} text={text} />
          ))}
          {viewEntries(report).map((e) => (
            <ShortcutRow key={e.view} keys={["G", e.key.toUpperCase()]} text={e.name} />
          ))}
        </dl>
        <p style="margin-top:16px;text-align:right">
          <button type="button" class="btn" onClick={onClose}>
            Close
          </button>
        </p>
      </div>
    </dialog>
  );
}

function ShortcutRow({ keys, text }: { keys: readonly string[]; text: string }) {
  return (
    <>
      <dt>
        {keys.map((k) => (
          <>
            <kbd>{k}</kbd>{" "}
          </>
        ))}
      </dt>
      <dd>{text}</dd>
    </>
  );
}
