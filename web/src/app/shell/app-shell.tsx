import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { forgetPageSecret } from "../../api/page-secret";
import { switchTheme } from "../../charts/theme";
import { takesKeys } from "../../viewer/viewer-keys";
import { Brand, Icon } from "../../widgets/icon";
import { Toasts } from "../../widgets/toast";
import { AppPalette, SECTIONS } from "./app-palette";
import { useTeam } from "./context";
import { Link } from "./link";

/** The top bar with the sections, and the page below it. */
export function AppShell({ section, children }: { section: string; children: ComponentChildren }) {
  const { account, me, router, api } = useTeam();
  const [dialog, open] = useState<"" | "palette" | "help">("");
  const [menu, setMenu] = useState(false);
  const main = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let pressedG = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent) => {
      // The viewer handles its own keys.
      if (document.querySelector("[data-viewer]")) return;
      const key = event.key.toLowerCase();
      if ((event.ctrlKey || event.metaKey) && key === "k") {
        event.preventDefault();
        open("palette");
      }
      if (event.ctrlKey || event.metaKey || event.altKey || takesKeys(event.target as HTMLElement | null)) return;
      if (performance.now() - pressedG < 1500) {
        pressedG = Number.NEGATIVE_INFINITY;
        const entry = SECTIONS.find(([, , letter]) => letter === key);
        if (entry) router.go(router.href([account, entry[0]].filter(Boolean)));
      } else if (key === "/") {
        event.preventDefault();
        open("palette");
      } else if (key === "?") open("help");
      else if (key === "t") switchTheme();
      else if (key === "g") pressedG = performance.now();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [account]);
  useEffect(() => setMenu(false), [section]);
  return (
    <>
      <a
        class="skip"
        href="#content"
        onClick={(e) => {
          e.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <header class="topbar">
        <button
          type="button"
          class="btn ghost iconbtn menu"
          aria-label="Menu"
          aria-expanded={menu}
          onClick={() => setMenu(!menu)}
        >
          <Icon name="menu" />
        </button>
        <Brand href={router.href([account])} />
        <nav class={menu ? "topnav open" : "topnav"} aria-label="Main">
          {SECTIONS.map(([id, name]) => (
            <Link
              key={id}
              to={[account, id].filter(Boolean)}
              aria-current={id === section ? "page" : undefined}
              testid={`nav-${id || "home"}`}
            >
              {name}
            </Link>
          ))}
        </nav>
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
          aria-label="Switch theme"
          title="Switch theme (T)"
          onClick={switchTheme}
          data-testid="theme"
        >
          <Icon name="sun" />
        </button>
        <button
          type="button"
          class="btn ghost iconbtn hide-n"
          aria-label="Keyboard shortcuts"
          title="Keyboard shortcuts (?)"
          onClick={() => open("help")}
        >
          <Icon name="help" />
        </button>
        <div class="acct">
          {me.accounts.length > 1 ? (
            <select
              class="sel"
              aria-label="Account"
              value={account}
              onChange={(e) => router.go(router.href([e.currentTarget.value]))}
            >
              {me.accounts.map((a) => (
                <option key={a.name}>{a.name}</option>
              ))}
            </select>
          ) : (
            <span>{account}</span>
          )}
          {me.kind === "session" && (
            <button
              type="button"
              class="btn ghost sm"
              title={`Signed in as ${me.user}`}
              data-testid="sign-out"
              onClick={() =>
                void api.send("DELETE", "session").then(() => {
                  forgetPageSecret();
                  location.assign(router.href(["login"]));
                })
              }
            >
              Sign out
            </button>
          )}
        </div>
      </header>
      <div id="content" ref={main} tabIndex={-1}>
        {children}
      </div>
      <AppPalette
        open={dialog === "palette"}
        onClose={() => open((now) => (now === "palette" ? "" : now))}
        onHelp={() => open("help")}
      />
      <AppHelp open={dialog === "help"} onClose={() => open((now) => (now === "help" ? "" : now))} />
      <Toasts />
    </>
  );
}

/** Keyboard shortcuts of the app. Reports have their own help. */
function AppHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal();
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  return (
    <dialog class="palette help" ref={ref} onClose={onClose} aria-label="Keyboard shortcuts">
      <h2>Keyboard shortcuts</h2>
      <dl class="kv">
        {SECTIONS.map(([id, name, letter]) => (
          <>
            <dt key={id}>
              <kbd>G</kbd> <kbd>{letter.toUpperCase()}</kbd>
            </dt>
            <dd>{name}</dd>
          </>
        ))}
        <dt>
          <kbd>/</kbd> or <kbd>Ctrl</kbd> <kbd>K</kbd>
        </dt>
        <dd>Search</dd>
        <dt>
          <kbd>T</kbd>
        </dt>
        <dd>Switch theme</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>Keyboard shortcuts</dd>
      </dl>
      <p class="pfoot">
        <span>
          Reports have more shortcuts: press <kbd>?</kbd> there.
        </span>
        <button type="button" class="btn sm push" onClick={() => ref.current?.close()}>
          Close
        </button>
      </p>
    </dialog>
  );
}
