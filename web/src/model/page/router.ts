import type { ParamStore } from "./hooks";
import type { Params } from "./nav";

/** The path and parameters of the URL. The hash belongs to the viewer. */
export class Router implements ParamStore {
  parts: readonly string[];
  params: Params;
  private readonly listeners = new Set<() => void>();

  constructor(readonly root: string) {
    [this.parts, this.params] = this.read();
    addEventListener("popstate", () => {
      [this.parts, this.params] = this.read();
      this.notify();
    });
  }

  private read(): [string[], Params] {
    const path = `${location.pathname}/`.startsWith(`${this.root}/`)
      ? location.pathname.slice(this.root.length)
      : location.pathname;
    const parts = path
      .split("/")
      .filter(Boolean)
      .map((part) => {
        try {
          return decodeURIComponent(part);
        } catch {
          return part;
        }
      });
    return [parts, Object.fromEntries(new URLSearchParams(location.search))];
  }

  href(parts: readonly string[], params: Readonly<Record<string, string | undefined>> = {}): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(params)) if (value) search.set(name, value);
    const text = search.toString();
    return `${this.root}/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
  }

  go(href: string): void {
    history.pushState(null, "", href);
    [this.parts, this.params] = this.read();
    scrollTo(0, 0);
    this.notify();
  }

  /** Set parameters without a history entry, because search fields set one per keystroke. */
  set(params: Readonly<Record<string, string | undefined>>): void {
    const next: Record<string, string | undefined> = { ...this.params, ...params };
    const href = this.href(this.parts, next);
    if (href !== location.pathname + location.search) history.replaceState(null, "", href + location.hash);
    this.params = Object.fromEntries(
      Object.entries(next).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
    );
    this.notify();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}
