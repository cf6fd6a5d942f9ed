import { useRef } from "preact/hooks";
import { switchTheme } from "../charts/theme";
import type { Model } from "../model/model";
import { copy } from "../widgets/clipboard";
import { Brand, Icon } from "../widgets/icon";
import { Viewer } from "./viewer";

/** A report as a standalone page. */
export function ReportFile({ model }: { model: Model }) {
  const main = useRef<HTMLElement>(null);
  return (
    <Viewer model={model} main={main}>
      {(open) => (
        <>
          <a
            class="skip"
            href="#main"
            onClick={(e) => {
              e.preventDefault();
              main.current?.focus();
            }}
          >
            Skip to content
          </a>
          <header class="topbar">
            <Brand href="#overview" />
            <span class="grow" />
            <button
              type="button"
              class="searchbtn"
              aria-label="Search"
              onClick={() => open("palette")}
              data-testid="open-palette"
            >
              <Icon name="search" />
              <span>Search</span>
              <kbd>/</kbd>
            </button>
            <button
              type="button"
              class="btn ghost iconbtn"
              aria-label="Copy link"
              title="Copy link"
              onClick={() => copy(model.nav.link(), "Link copied")}
            >
              <Icon name="share" />
            </button>
            <button
              type="button"
              class="btn ghost iconbtn"
              aria-label="Switch theme"
              title="Switch theme (T)"
              onClick={switchTheme}
              data-testid="theme"
            >
              <Icon name="sun" />
            </button>
            <button
              type="button"
              class="btn ghost iconbtn"
              aria-label="Keyboard shortcuts"
              title="Keyboard shortcuts (?)"
              onClick={() => open("help")}
            >
              <Icon name="help" />
            </button>
          </header>
        </>
      )}
    </Viewer>
  );
}
