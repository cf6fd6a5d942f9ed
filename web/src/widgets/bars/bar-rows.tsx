import type { ComponentChildren } from "preact";

export interface BarPart {
  key: string;
  value: number;
  class?: string;
  colour?: string;
  title: string;
}

export interface BarRow {
  key: string;
  name: ComponentChildren;
  text: ComponentChildren;
  parts: BarPart[];
}

/** Rows of stacked bars that share one scale. */
export function BarRows({ rows, max }: { rows: readonly BarRow[]; max: number }) {
  return (
    <ul class="barrows">
      {rows.map((r) => (
        <li key={r.key}>
          <span class="n">{r.name}</span>
          <span class="b">
            {r.parts.map((p) => (
              <i
                key={p.key}
                class={p.class}
                title={p.title}
                style={{
                  width: `${(p.value / Math.max(max, 1e-12)) * 100}%`,
                  background: p.colour && `var(${p.colour})`,
                }}
              />
            ))}
          </span>
          <span class="v">{r.text}</span>
        </li>
      ))}
    </ul>
  );
}
