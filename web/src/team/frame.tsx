import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { nextTheme } from "../app";
import { Brand, Icon } from "../widgets/icon";
import { Toasts } from "../widgets/toast";
import { useTeam } from "./context";
import { Jump } from "./jump";
import { Keys } from "./keys";
import { Link } from "./parts";

export const SECTIONS = [
  ["", "Home", "h"],
  ["clusters", "Clusters", "c"],
  ["errors", "Errors", "e"],
  ["reports", "Reports", "r"],
  ["usage", "Usage", "u"],
  ["settings", "Settings", "s"],
] as const;

/** The top bar with the sections, and below it the page. */
export function Frame({ section, children }: { section: string; children: ComponentChildren }) {
  const { account, me, router, api } = useTeam();
  const [dialog, open] = useState<"" | "jump" | "keys">("");
  const [menu, setMenu] = useState(false);
  const main = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let going = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent) => {
      // The viewer has keys of its own.
      if (document.querySelector("[data-viewer]")) return;
      const key = event.key.toLowerCase();
      if ((event.ctrlKey || event.metaKey) && key === "k") {
        event.preventDefault();
        open("jump");
      }
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement | null)?.closest("input, select, textarea, dialog")) return;
      if (performance.now() - going < 1500) {
        going = Number.NEGATIVE_INFINITY;
        const entry = SECTIONS.find(([, , letter]) => letter === key);
        if (entry) router.go(router.href([account, entry[0]].filter(Boolean)));
      } else if (key === "/") {
        event.preventDefault();
        open("jump");
      } else if (key === "?") open("keys");
      else if (key === "t") nextTheme();
      else if (key === "g") going = performance.now();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [account]);
  useEffect(() => setMenu(false), [section]);
  return (
    <>
      <a class="skip" href="#content" onClick={(e) => { e.preventDefault(); main.current?.focus(); }}>
        Skip to content
      </a>
      <header class="topbar">
        <button type="button" class="btn ghost iconbtn menu" aria-label="Menu" aria-expanded={menu} onClick={() => setMenu(!menu)}>
          <Icon name="menu" />
        </button>
        <Brand href={router.href([account])} />
        <nav class={menu ? "topnav open" : "topnav"} aria-label="Main">
          {SECTIONS.map(([id, name]) => (
            <Link key={id} to={[account, id].filter(Boolean)} aria-current={id === section ? "page" : undefined} testid={`nav-${id || "home"}`}>
              {name}
            </Link>
          ))}
        </nav>
        <span class="grow" />
        <button type="button" class="searchbtn" aria-label="Search or jump to" onClick={() => open("jump")} data-testid="open-jump">
          <Icon name="search" />
          <span>Search or jump to</span>
          <kbd>/</kbd>
        </button>
        <button type="button" class="btn ghost iconbtn" aria-label="Light or dark" title="Light or dark (T)" onClick={nextTheme} data-testid="theme">
          <Icon name="sun" />
        </button>
        <button type="button" class="btn ghost iconbtn hide-n" aria-label="Keys and help" title="Help (?)" onClick={() => open("keys")}>
          <Icon name="help" />
        </button>
        <div class="acct">
          {me.accounts.length > 1 ? (
            <select class="sel" aria-label="Account" value={account} onChange={(e) => router.go(router.href([e.currentTarget.value]))}>
              {me.accounts.map((a) => (
                <option key={a.name}>{a.name}</option>
              ))}
            </select>
          ) : (
            <span>{account}</span>
          )}
          {me.kind === "session" && (
            <button type="button" class="btn ghost sm" title={`Logged in as ${me.user}`} data-testid="log-out" onClick={() => void api.send("DELETE", "session").then(() => location.assign(router.href(["login"])))}>
              Log out
            </button>
          )}
        </div>
      </header>
      <div id="content" ref={main} tabIndex={-1}>
        {children}
      </div>
      <Jump open={dialog === "jump"} onClose={() => open((now) => (now === "jump" ? "" : now))} onKeys={() => open("keys")} />
      <Keys open={dialog === "keys"} onClose={() => open((now) => (now === "keys" ? "" : now))} />
      <Toasts />
    </>
  );
}
