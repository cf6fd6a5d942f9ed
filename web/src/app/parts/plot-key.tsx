import type { PlotSeries } from "../../widgets/plots/plot";

/** The legend of a plot. */
export function PlotKey({ series }: { series: readonly PlotSeries[] }) {
  return (
    <div class="plotkey">
      {series.map((s) => (
        <span key={s.label}>
          <i style={{ borderTop: `2px ${s.dash ? "dashed" : "solid"} var(${s.colour})` }} />
          {s.label}
        </span>
      ))}
    </div>
  );
}
