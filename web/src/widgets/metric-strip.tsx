import type { ComponentChildren } from "preact";

export interface Metric {
  id: string;
  label: string;
  value: ComponentChildren;
  note: string;
}

/** A strip of related values. */
export function MetricStrip({ metrics }: { metrics: readonly Metric[] }) {
  return (
    <dl class="panel metrics eq">
      {metrics.map((m) => (
        <div class="metric" key={m.id}>
          <dt>{m.label}</dt>
          <dd class="v" data-testid={`metric-${m.id}`}>
            {m.value}
          </dd>
          <dd class="s" title={m.note}>
            {m.note}
          </dd>
        </div>
      ))}
    </dl>
  );
}
