import type { Model } from "../model/model";
import { pan, wholeRun, zoom } from "../model/time";
import { viewEntries } from "./views";

/** Whether an element takes the keys itself. A dialog that was closed keeps the focus until the next frame, and takes none. */
export function takesKeys(target: HTMLElement | null): boolean {
  return !!target?.closest("input, select, textarea, dialog") && !target.closest("dialog:not([open])");
}

/** Handle the keyboard shortcuts of the viewer, except in input fields. Returns a function that stops it. */
export function listenForKeys(
  model: Model,
  open: (dialog: "" | "help" | "palette") => void,
  switchTheme: () => void,
): () => void {
  const { nav, axis } = model;
  let pressedG = Number.NEGATIVE_INFINITY;
  const onKey = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open("palette");
      return;
    }
    const target = event.target as HTMLElement | null;
    if (event.ctrlKey || event.metaKey || event.altKey || takesKeys(target)) return;
    const key = event.key.toLowerCase();
    if (performance.now() - pressedG < 1500) {
      pressedG = Number.NEGATIVE_INFINITY;
      const entry = viewEntries(model.report).find((e) => e.key === key);
      if (entry) {
        event.preventDefault();
        nav.go(entry.view);
        return;
      }
    }
    const now = nav.state.selection;
    const actions: Record<string, () => void> = {
      w: () => nav.select(zoom(axis, now, 0.8)),
      s: () => nav.select(zoom(axis, now, 1.25)),
      a: () => nav.select(pan(axis, now, -0.1)),
      d: () => nav.select(pan(axis, now, 0.1)),
      "/": () => open("palette"),
      "?": () => open("help"),
      t: switchTheme,
      g: () => {
        pressedG = performance.now();
      },
      "[": () => step(-1),
      "]": () => step(1),
      escape: () => {
        if (nav.state.params.item) nav.set({ item: undefined });
        else if (nav.state.activity) nav.filterActivity(null);
        else if (!now.whole) nav.select(wholeRun(axis));
      },
    };
    const action = actions[key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  /** Open the previous or next task, worker or error. */
  const step = (by: number) => {
    const item = nav.state.params.item;
    if (item !== undefined && /^\d+$/.test(item)) nav.set({ item: String(Math.max(0, Number(item) + by)) });
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}
