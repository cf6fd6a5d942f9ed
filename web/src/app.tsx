import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { setTheme, theme } from "./charts/theme";
import { count, moment } from "./model/format";
import { ModelContext, ParamContext, useModel, useView } from "./model/hooks";
import type { Model } from "./model/model";
import type { View } from "./model/nav";
import { Bandwidth } from "./pages/bandwidth";
import { Code } from "./pages/code";
import { Errors } from "./pages/errors";
import { Events } from "./pages/events";
import { Fine } from "./pages/fine";
import { Groups } from "./pages/groups";
import { Memory } from "./pages/memory";
import { Overview } from "./pages/overview";
import { Path } from "./pages/path";
import { Profile } from "./pages/profile";
import { StreamPage } from "./pages/stream";
import { Tables } from "./pages/tables";
import { Workers } from "./pages/workers";
import { copy } from "./widgets/basics";
import { Help } from "./widgets/help";
import { Brand, Icon } from "./widgets/icon";
import { listen } from "./widgets/keys";
import { Palette } from "./widgets/palette";
import { Toasts } from "./widgets/toast";
import { RAIL, viewName } from "./widgets/views";

const PAGES: Record<View, FunctionComponent> = {
  overview: Overview, stream: StreamPage, profile: Profile, fine: Fine, memory: Memory, bandwidth: Bandwidth, workers: Workers, errors: Errors, code: Code, groups: Groups, events: Events, path: Path, tables: Tables,
};

export function nextTheme(): void {
  const dark = theme() === "dark" || (theme() === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  setTheme(dark ? "light" : "dark");
}

/** A report as a page of its own: the file, or a link to one report. */
export function App({ model }: { model: Model }) {
  const main = useRef<HTMLElement>(null);
  return (
    <Viewer model={model} main={main}>
      {(open) => (
        <>
          <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); main.current?.focus(); }}>
            Skip to content
          </a>
          <header class="topbar">
            <Brand href="#overview" />
            <span class="grow" />
            <button type="button" class="searchbtn" aria-label="Search or jump to" onClick={() => open("palette")} data-testid="open-palette">
              <Icon name="search" />
              <span>Search or jump to</span>
              <kbd>/</kbd>
            </button>
            <button type="button" class="btn ghost iconbtn" aria-label="Copy link to this view" title="Copy link" onClick={() => copy(model.nav.link(), "Link copied")}>
              <Icon name="share" />
            </button>
            <button type="button" class="btn ghost iconbtn" aria-label="Light or dark" title="Light or dark (T)" onClick={nextTheme} data-testid="theme">
              <Icon name="sun" />
            </button>
            <button type="button" class="btn ghost iconbtn" aria-label="Keys and help" title="Help (?)" onClick={() => open("help")}>
              <Icon name="help" />
            </button>
          </header>
        </>
      )}
    </Viewer>
  );
}

type Dialog = "" | "help" | "palette";

interface ViewerProps {
  model: Model;
  main?: preact.RefObject<HTMLElement | null>;
  /** What stands above; it is given how to open a dialog. */
  children?: (open: (dialog: Dialog) => void) => preact.ComponentChildren;
}

/** The views of one report, with their rail, keys and dialogs. */
export function Viewer({ model, main, children }: ViewerProps) {
  const [dialog, setDialog] = useState<Dialog>("");
  // A dialog says that it closed a moment later; the other one may be open by then.
  const closed = (which: Dialog) => setDialog((now) => (now === which ? "" : now));
  useEffect(() => listen(model, setDialog, nextTheme), [model]);
  return (
    <ModelContext.Provider value={model}>
      <ParamContext.Provider value={model.nav}>
        {children?.(setDialog)}
        <div class="shell" data-viewer>
          <Rail />
          <Content main={main} />
        </div>
        <Palette open={dialog === "palette"} onClose={() => closed("palette")} onHelp={() => setDialog("help")} />
        <Help open={dialog === "help"} onClose={() => closed("help")} />
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
        {location.href} · made {moment(model.report.made_us)} by {model.report.generator} · {model.report.statement}
      </p>
    </main>
  );
}

function Rail() {
  const model = useModel();
  const view = useView();
  const { report } = model;
  const counts: Partial<Record<View, number>> = { workers: report.workers.length, errors: report.errors.length, groups: report.groups.length, events: report.events_of, code: report.computations.length };
  return (
    <nav class="rail" aria-label="Views">
      <div class="inner">
        {RAIL.map(([title, views]) => (
          <RailGroup key={title} title={title}>
            {views.map(({ view: v, name, icon }) => (
              <a
                key={v} href={model.nav.href(v)} aria-current={v === view ? "page" : undefined} data-testid={`nav-${v}`}
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
        <div class="foot">
          {report.complete ? "Recorded in full" : "Recorded in part"}
          <br />
          {report.statement}
        </div>
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
