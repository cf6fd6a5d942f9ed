import { part } from "../../model/quantity";
import { duration, shares } from "../../model/text/format";

export interface Part {
  key: string;
  label: string;
  us: number;
  class?: string;
  colour?: string;
  mono?: boolean;
}

interface Props {
  parts: readonly Part[];
  label: string;
  /** The part that filters the page; null for none. */
  chosen?: string | null;
  onChoose?: (key: string) => void;
  /** Of what the entries of the legend are the time and the share, by activity. */
  quantity?: string;
}

/** Thread time as one stacked bar. Thin parts are hard to hit, so that the legend has a button for each part. */
export function TimeBar({ parts, label, chosen = null, onChoose, quantity }: Props) {
  const total = parts.reduce((a, p) => a + p.us, 0);
  const texts = shares(parts.map((p) => p.us));
  const narrow = innerWidth < 900 ? 2.7 : 1;
  return (
    <>
      <div
        class="timebar"
        role="img"
        aria-label={`${label}: ${parts.map((p, i) => `${p.label} ${texts[i]}`).join(", ")}`}
      >
        {parts.map((p, i) => {
          const share = total > 0 ? p.us / total : 0;
          if (share === 0) return null;
          return (
            <i
              key={p.key}
              class={`${p.class ?? ""} ${onChoose ? "pick" : ""} ${chosen !== null && chosen !== p.key ? "away" : ""}`}
              data-part={p.key}
              onClick={() => onChoose?.(p.key)}
              style={{
                flex: `${share} 1 0`,
                background: p.colour && `var(${p.colour})`,
                color: p.colour && "var(--bg-panel)",
              }}
              title={`${p.label} ${duration(p.us)}, ${texts[i]}`}
            >
              {share > 0.045 * narrow && <b>{share > 0.1 * narrow ? `${p.label} ${texts[i]}` : texts[i]}</b>}
            </i>
          );
        })}
      </div>
      <ul class="legend">
        {parts.map((p, i) => {
          const text = (
            <>
              <i class={`sw ${p.class ?? ""}`} style={{ background: p.colour && `var(${p.colour})` }} />
              <span class={p.mono ? "mono" : ""} style="overflow:hidden;text-overflow:ellipsis" title={p.label}>
                {p.label}
              </span>
              <b>
                <data data-quantity={quantity && part(`${quantity}-time`, "activity", p.key)}>{duration(p.us)}</data>
                <em data-quantity={quantity && part(`${quantity}-share`, "activity", p.key)}>{texts[i]}</em>
              </b>
            </>
          );
          if (!onChoose)
            return (
              <li key={p.key} class="entry">
                {text}
              </li>
            );
          return (
            <li key={p.key}>
              <button
                type="button"
                class="entry"
                aria-pressed={chosen === p.key}
                title={`Show only ${p.label}`}
                onClick={() => onChoose(p.key)}
              >
                {text}
              </button>
            </li>
          );
        })}
      </ul>
    </>
  );
}
