/** A small line chart without axes. */
export function Sparkline({
  values,
  label,
  max = Math.max(...values, 1e-12),
  width = 84,
  height = 18,
  tone = "var(--text-3)",
}: {
  values: readonly number[];
  label: string;
  max?: number;
  width?: number;
  height?: number;
  tone?: string;
}) {
  if (values.length < 2) return null;
  const points = values
    .map(
      (v, i) =>
        `${((i / (values.length - 1)) * width).toFixed(1)},${(height - 1 - (Math.max(v, 0) / max) * (height - 3)).toFixed(1)}`,
    )
    .join(" ");
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <polygon points={`0,${height} ${points} ${width},${height}`} fill="var(--bar-soft)" />
      <polyline points={points} fill="none" stroke={tone} stroke-width="1.4" />
    </svg>
  );
}
