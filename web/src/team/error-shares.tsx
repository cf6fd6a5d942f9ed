import type { Failure } from "../api/server.gen";

export function tally(failures: readonly Failure[], pick: (f: Failure) => string): [string, number][] {
  const counts = new Map<string, number>();
  for (const f of failures) counts.set(pick(f), (counts.get(pick(f)) ?? 0) + f.count);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

export function Shares({ title, parts }: { title: string; parts: readonly [string, number][] }) {
  const total = parts.reduce((sum, [, n]) => sum + n, 0);
  if (total === 0) return null;
  const shown = parts.slice(0, 4);
  const rest = total - shown.reduce((sum, [, n]) => sum + n, 0);
  const rows: [string, number][] = rest > 0 ? [...shown, [`${parts.length - 4} others`, rest]] : shown;
  return (
    <div class="dist">
      <h3>{title}</h3>
      {rows.map(([name, n]) => (
        <div class="share" key={name} style={{ "--share": String(n / total) }}>
          <span class="mono cut">{name || "unknown"}</span>
          <span>{Math.round((100 * n) / total)} %</span>
        </div>
      ))}
    </div>
  );
}
