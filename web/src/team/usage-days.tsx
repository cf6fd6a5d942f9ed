import { type UsageBars, usageTicks } from "../model/usage";
import { useWidth } from "../widgets/use-canvas";

const HEIGHT = 150;
const TOP = 8;
const AXIS = 20;
const GUTTER = 74;

/** One column per day, with busy below idle. */
export function UsageDays({ data, format, label }: { data: UsageBars; format: (v: number) => string; label: string }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const { bars, max, measure } = data;
  const base = HEIGHT - AXIS;
  const y = (value: number) => base - (max > 0 ? value / max : 0) * (base - TOP);
  const step = Math.max(1, width - GUTTER) / bars.length;
  const thick = Math.max(1, Math.min(36, step * 0.76));
  const every = Math.max(1, Math.ceil(78 / step));
  return (
    <div class="usagedays" ref={box}>
      <svg width={width} height={HEIGHT} role="img" aria-label={label}>
        <defs>
          <pattern id="usage-idle" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect width="6" height="6" fill="var(--act-idle)" />
            <rect width="1.500" height="6" fill="var(--act-idle-hatch)" />
          </pattern>
        </defs>
        {usageTicks(measure, max).map((value) => (
          <g key={value}>
            <path d={`M${GUTTER} ${Math.round(y(value)) + 0.5}H${width}`} stroke="var(--line-faint)" />
            <text x={GUTTER - 8} y={y(value) + 4} text-anchor="end">
              {value === 0 ? "0" : format(value)}
            </text>
          </g>
        ))}
        {bars.map((bar, i) => {
          const x = GUTTER + i * step + (step - thick) / 2;
          const middle = y(bar.busy);
          return (
            <g key={bar.name}>
              {bar.idle > 0 && (
                <rect
                  x={x}
                  y={y(bar.busy + bar.idle)}
                  width={thick}
                  height={middle - y(bar.busy + bar.idle)}
                  fill="url(#usage-idle)"
                />
              )}
              {bar.busy > 0 && <rect x={x} y={middle} width={thick} height={base - middle} fill="var(--act-cpu)" />}
              {(bars.length - 1 - i) % every === 0 && (
                <text x={Math.min(x + thick / 2, width - 18)} y={HEIGHT - 5} text-anchor="middle">
                  {bar.name.slice(5)}
                </text>
              )}
              <rect x={GUTTER + i * step} y={0} width={step} height={base} fill="transparent">
                <title>{`${bar.name}: ${format(bar.busy)} busy, ${format(bar.idle)} idle`}</title>
              </rect>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
