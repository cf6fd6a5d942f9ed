import { vi } from "vitest";

/** The parts of a browser window that the router and the navigation use. */
export interface FakeBrowser {
  /** URLs of the history, oldest first. */
  readonly entries: string[];
  /** Number of history.replaceState calls. */
  replaced: number;
  location: { pathname: string; search: string; hash: string; href: string };
  /** Go back one entry, as the Back button does. */
  back(): void;
}

/** Replace location, history and window events with fakes until vi.unstubAllGlobals(). */
export function fakeBrowser(start: string): FakeBrowser {
  const listeners = new Set<() => void>();
  const entries = [start];
  const browser: FakeBrowser = {
    entries,
    replaced: 0,
    get location() {
      const url = new URL(entries[entries.length - 1], "http://host");
      return { pathname: url.pathname, search: url.search, hash: url.hash, href: url.href };
    },
    back() {
      entries.pop();
      for (const listener of listeners) listener();
    },
  };
  const resolve = (url: string) => new URL(url, browser.location.href).href.replace("http://host", "");
  vi.stubGlobal("location", {
    origin: "http://host",
    get pathname() {
      return browser.location.pathname;
    },
    get search() {
      return browser.location.search;
    },
    get hash() {
      return browser.location.hash;
    },
    get href() {
      return browser.location.href;
    },
  });
  vi.stubGlobal("history", {
    pushState: (_data: unknown, _title: string, url: string) => entries.push(resolve(url)),
    replaceState: (_data: unknown, _title: string, url: string) => {
      browser.replaced++;
      entries[entries.length - 1] = resolve(url);
    },
  });
  vi.stubGlobal("addEventListener", (name: string, listener: () => void) => {
    if (name === "popstate") listeners.add(listener);
  });
  vi.stubGlobal("removeEventListener", (_name: string, listener: () => void) => listeners.delete(listener));
  vi.stubGlobal("scrollTo", () => undefined);
  vi.stubGlobal("window", globalThis);
  return browser;
}
