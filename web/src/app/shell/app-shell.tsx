import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { forgetPageSecret } from "../../api/page-secret";
import { switchTheme } from "../../charts/theme";
import type { Model } from "../../model/model";
import { takesKeys } from "../../viewer/viewer-keys";
import { Popover } from "../../widgets/controls/popover";
import {
  COMMON_SHORTCUTS,
  type Dialog,
  HelpDialog,
  type Shortcut,
  SkipLink,
  TopTools,
} from "../../widgets/controls/topbar";
import { Brand, Icon } from "../../widgets/icon";
import { Toasts } from "../../widgets/toast";
import { ALL_SECTIONS, AppPalette, SECTIONS } from "./app-palette";
import { PaletteContext, useTeam } from "./context";
import { Link } from "./link";

/** The top bar with the sections, and the page below it. */
export function AppShell({ section, children }: { section: string; children: ComponentChildren }) {
  const { account, router } = useTeam();
  const [dialog, open] = useState<Dialog>("");
  const [menu, setMenu] = useState(false);
  const [run, setRun] = useState<Model | null>(null);
  const palette = useMemo(() => ({ open: () => open("palette"), show: setRun }), []);
  const main = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let pressedG = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent) => {
      // The views of a run handle their own keys.
      if (document.querySelector("[data-viewer]")) return;
      const key = event.key.toLowerCase();
      if ((event.ctrlKey || event.metaKey) && key === "k") {
        event.preventDefault();
        open("palette");
      }
      if (event.ctrlKey || event.metaKey || event.altKey || takesKeys(event.target as HTMLElement | null)) return;
      if (performance.now() - pressedG < 1500) {
        pressedG = Number.NEGATIVE_INFINITY;
        const entry = ALL_SECTIONS.find(([, , letter]) => letter === key);
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
      <SkipLink to={main} />
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
        <TopTools open={open} />
        <AccountMenu key={section} section={section} />
      </header>
      <div id="content" ref={main} tabIndex={-1}>
        <PaletteContext.Provider value={palette}>{children}</PaletteContext.Provider>
      </div>
      <AppPalette
        run={run}
        open={dialog === "palette"}
        onClose={() => open((now) => (now === "palette" ? "" : now))}
        onHelp={() => open("help")}
      />
      <HelpDialog
        shortcuts={SHORTCUTS}
        open={dialog === "help"}
        onClose={() => open((now) => (now === "help" ? "" : now))}
      >
        Runs have more shortcuts: press <kbd>?</kbd> there.
      </HelpDialog>
      <Toasts />
    </>
  );
}

/** The account, and a menu with its settings, other accounts and signing out. */
function AccountMenu({ section }: { section: string }) {
  const { account, me, router, api } = useTeam();
  const signOut = () =>
    void api.send("DELETE", "session").then(() => {
      forgetPageSecret();
      location.assign(router.href(["login"]));
    });
  return (
    <Popover
      class="acct"
      testid="account-menu"
      button={
        <>
          <span class="cut">
            <span class="sr">Account</span>
            <Person name={account} />
          </span>
          <Icon name="chev" />
        </>
      }
    >
      <p class="faint">
        {me.kind === "session" ? `Signed in as ${me.user}` : me.user} in {account}
      </p>
      <Link to={[account, "settings"]} aria-current={section === "settings" ? "page" : undefined} testid="nav-settings">
        Settings
      </Link>
      {me.accounts
        .filter((other) => other.name !== account)
        .map((other) => (
          <Link key={other.name} to={[other.name]}>
            Switch to {other.name}
          </Link>
        ))}
      {me.kind === "session" && (
        <button type="button" data-testid="sign-out" onClick={signOut}>
          Sign out
        </button>
      )}
    </Popover>
  );
}

const SHORTCUTS: readonly Shortcut[] = [
  ...ALL_SECTIONS.map(([, name, letter]): Shortcut => [["G", letter.toUpperCase()], name]),
  ...COMMON_SHORTCUTS,
];

/** A name with its initials. */
function Person({ name }: { name: string }) {
  const letters = name
    .split(/[ ._-]+/)
    .map((part) => part[0] ?? "")
    .join("")
    .slice(0, 2)
    .toUpperCase();
  return (
    <>
      <span class="avatar" aria-hidden="true">
        {letters}
      </span>
      {name}
    </>
  );
}
