/** Colours of the current theme for canvases, and theme changes. */

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

/** Return a colour as a 32-bit pixel, little-endian with alpha in the highest byte. */
export function pixelOf(name: string, alpha = 1): number {
  pixel ??= Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", {
    willReadFrequently: true,
  });
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

/** Set the theme and remember it if the browser allows. */
export function setTheme(next: Theme): void {
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "system") localStorage.removeItem("daskscope-theme");
    else localStorage.setItem("daskscope-theme", next);
  } catch {
    // Sandboxed pages have no storage; the choice lasts until the page closes.
  }
  changed();
}

export function startTheme(): void {
  try {
    const saved = localStorage.getItem("daskscope-theme");
    if (saved === "light" || saved === "dark") document.documentElement.dataset.theme = saved;
  } catch {
    // Sandboxed pages have no storage.
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

/** Switch between light and dark. */
export function switchTheme(): void {
  const dark = theme() === "dark" || (theme() === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  setTheme(dark ? "light" : "dark");
}
