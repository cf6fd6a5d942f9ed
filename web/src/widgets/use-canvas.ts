import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { onTheme } from "../charts/theme";
import { onHover } from "../model/page/hover";

/** Return the width of an element, updated when it changes. */
export function useWidth<T extends HTMLElement>(): [RefObject<T | null>, number] {
  const ref = useRef<T>(null);
  const [width, set] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => {
      const style = getComputedStyle(element);
      set(
        Math.max(
          0,
          Math.floor(
            element.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight),
          ),
        ),
      );
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

/** Return the height of the window, updated when it changes. */
export function useWindowHeight(): number {
  const [height, set] = useState(innerHeight);
  useEffect(() => {
    const measure = () => set(innerHeight);
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  return height;
}

/** Return a number that changes with the theme, to trigger a redraw. */
export function useThemeVersion(): number {
  const [version, rerender] = useReducer((n: number) => n + 1, 0);
  useEffect(() => onTheme(() => rerender(0)), []);
  return version;
}

/** Draw a canvas when its width, the theme or the dependencies change. */
export function useCanvas(
  draw: (canvas: HTMLCanvasElement, width: number) => void,
  deps: readonly unknown[],
): [RefObject<HTMLDivElement | null>, RefObject<HTMLCanvasElement | null>, number] {
  const [box, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemeVersion();
  useLayoutEffect(() => {
    if (canvas.current && width > 0) draw(canvas.current, width);
  }, [width, theme, ...deps]);
  return [box, canvas, width];
}

/** Show a vertical line at the hovered time of an axis from t0 to t1. */
export function useCrosshair(t0: number, t1: number, width: number): RefObject<HTMLDivElement | null> {
  const line = useRef<HTMLDivElement>(null);
  useEffect(
    () =>
      onHover((t) => {
        const element = line.current;
        if (!element) return;
        const x = t === null ? -1 : ((t - t0) / (t1 - t0)) * width;
        const shown = x >= 0 && x <= width;
        element.style.display = shown ? "block" : "none";
        if (shown) element.style.transform = `translateX(${x}px)`;
      }),
    [t0, t1, width],
  );
  return line;
}
