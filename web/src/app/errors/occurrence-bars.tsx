interface Props {
  /** Errors per step of time, oldest first. */
  counts: readonly number[];
  /** How many of them were not retried. */
  fatal: readonly number[];
  label: string;
  height: number;
}

/** Errors over time as bars: in ink the ones that were not retried, in gray above them the ones that were. */
export function OccurrenceBars({ counts, fatal, label, height }: Props) {
  const most = Math.max(...counts, 1);
  // At least 1.5 px, so that a single error is visible.
  const tall = (n: number) => (n > 0 ? Math.max(1.5, (n / most) * (height - 2)) : 0);
  return (
    <svg
      class="occurrences"
      viewBox={`0 0 ${counts.length} ${height}`}
      height={height}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path class="foot" d={`M0 ${height - 0.5}H${counts.length}`} />
      {counts.map((n, i) => {
        if (n === 0) return null;
        const ink = tall(fatal[i]);
        const gray = tall(n - fatal[i]);
        return (
          <>
            {gray > 0 && (
              <rect
                key={`retried ${i}`}
                class="retried"
                x={i + 0.1}
                y={height - ink - gray}
                width="0.8"
                height={gray}
              />
            )}
            {ink > 0 && <rect key={`fatal ${i}`} class="fatal" x={i + 0.1} y={height - ink} width="0.8" height={ink} />}
          </>
        );
      })}
    </svg>
  );
}
