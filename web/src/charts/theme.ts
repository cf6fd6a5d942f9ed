/** Colours of the current theme for canvases, and a way to hear of changes. */

const listeners = new Set<() => void>();
let cache = new Map<string, string>();
let probe: HTMLElement | null = null;
export type Theme = "system" | "light" | "dark";

export function css(name: string): string {
  let found = cache.get(name);
  if (found === undefined) {
    if (!probe) {
      probe = document.createElement("span");
      probe.hidden = true;
      document.body.append(probe);
    }
    probe.style.color = `var(${name})`;
    found = getComputedStyle(probe).color;
    cache.set(name, found);
  }
  return found;
}

let pixel: CanvasRenderingContext2D | null = null;

/** A colour as the 32 bits of a pixel (little-endian: alpha first). */
export function pixelOf(name: string, alpha = 1): number {
  pixel ??= Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  if (!pixel) return 0xff000000;
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = css(name);
  pixel.fillRect(0, 0, 1, 1);
  const [r, g, b] = pixel.getImageData(0, 0, 1, 1).data;
  return ((Math.round(alpha * 255) << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export function font(size = 11, mono = false): string {
  return `${size}px ${getComputedStyle(document.documentElement).getPropertyValue(mono ? "--font-mono" : "--font-sans")}`;
}

function changed(): void {
  cache = new Map();
  for (const listener of listeners) listener();
}

export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function theme(): Theme {
  const set = document.documentElement.dataset.theme;
  return set === "light" || set === "dark" ? set : "system";
}

/** An explicit choice is kept where the browser lets us; otherwise the system decides. */
export function setTheme(next: Theme): void {
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "system") localStorage.removeItem("daskscope-theme");
    else localStorage.setItem("daskscope-theme", next);
  } catch {
    // A page in a sandbox has no storage; the choice then lasts as long as the page.
  }
  changed();
}

export function startTheme(): void {
  try {
    const kept = localStorage.getItem("daskscope-theme");
    if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  } catch {
    // As above.
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.printing = theme();
    document.documentElement.dataset.theme = "light";
    changed();
  });
  addEventListener("afterprint", () => {
    const before = document.documentElement.dataset.printing;
    delete document.documentElement.dataset.printing;
    if (before === "light" || before === "dark") document.documentElement.dataset.theme = before;
    else delete document.documentElement.dataset.theme;
    changed();
  });
}
