import type { ComponentChildren } from "preact";

export interface Metric {
  id: string;
  label: string;
  value: ComponentChildren;
  note: string;
  /** Names the quantity, if it is shown in other places, too. */
  quantity?: string;
  /** A small picture beside the value. */
  figure?: ComponentChildren;
}

/** A strip of related values. */
export function MetricStrip({ metrics }: { metrics: readonly Metric[] }) {
  return (
    <dl class="panel metrics eq">
      {metrics.map((m) => (
        <div class={m.figure ? "metric figured" : "metric"} key={m.id}>
          <dt>{m.label}</dt>
          <dd class="v" data-testid={`metric-${m.id}`} data-quantity={m.quantity}>
            {m.value}
          </dd>
          <dd class="s" title={m.note}>
            {m.note}
          </dd>
          {m.figure && <dd class="figure">{m.figure}</dd>}
        </div>
      ))}
    </dl>
  );
}
