import type uPlot from "uplot";

/** Arrow keys move between values, Home and End go to the ends. Values are announced only for keys, not for the mouse. */
export function addPlotKeys(plot: uPlot, canvas: HTMLCanvasElement, readout: HTMLElement | null): void {
  const last = plot.data[0].length - 1;
  canvas.tabIndex = 0;
  canvas.addEventListener("keydown", (event) => {
    const now = plot.cursor.idx ?? -1;
    const next = { ArrowLeft: now < 0 ? last : now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    readout?.setAttribute("aria-live", "polite");
    plot.setCursor({ left: plot.valToPos(plot.data[0][Math.max(0, Math.min(last, next))], "x"), top: 10 });
  });
  canvas.addEventListener("blur", () => {
    readout?.setAttribute("aria-live", "off");
    plot.setCursor({ left: -10, top: -10 });
  });
}
