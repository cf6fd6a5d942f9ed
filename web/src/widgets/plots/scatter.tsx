import { useWidth } from "../use-canvas";

interface Props {
  label: string;
  points: readonly (readonly [number, number])[];
  /** A line to draw: its value at 0, and its slope. */
  line?: readonly [number, number];
  formatX: (value: number) => string;
  formatY: (value: number) => string;
  height?: number;
}

const LEFT = 64;
const BOTTOM = 28;
const TOP = 10;
const RIGHT = 40;

/** Points of two numbers, with both axes from zero. */
export function Scatter({ label, points, line, formatX, formatY, height = 260 }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const maxX = Math.max(...points.map(([x]) => x), 1) * 1.05;
  const maxY = Math.max(...points.map(([, y]) => y), 1) * 1.05;
  const inner = Math.max(width - LEFT - RIGHT, 10);
  const px = (x: number) => LEFT + (x / maxX) * inner;
  const py = (y: number) => TOP + (1 - y / maxY) * (height - TOP - BOTTOM);
  // Where the line leaves the plot at the top.
  const end = line && line[1] > 0 ? Math.min(maxX, (maxY - line[0]) / line[1]) : maxX;
  return (
    <div ref={box} class="scatter">
      <svg width={width} height={height} role="img" aria-label={label}>
        {axisTicks(maxY).map((y) => (
          <g key={y}>
            <line class="grid" x1={LEFT} x2={width - RIGHT} y1={py(y)} y2={py(y)} />
            <text class="y" x={LEFT - 8} y={py(y) + 4}>
              {y === 0 ? "0" : formatY(y)}
            </text>
          </g>
        ))}
        {axisTicks(maxX).map((x) => (
          <text class="x" key={x} x={px(x)} y={height - 8}>
            {formatX(x)}
          </text>
        ))}
        {line && <line class="fit" x1={px(0)} x2={px(end)} y1={py(line[0])} y2={py(line[0] + line[1] * end)} />}
        {points.map(([x, y], i) => (
          <circle key={i} cx={px(x)} cy={py(y)} r={3}>
            <title>{`${formatX(x)}: ${formatY(y)}`}</title>
          </circle>
        ))}
      </svg>
    </div>
  );
}

/** Return round numbers from 0 up to a maximum, about five of them. */
export function axisTicks(max: number): number[] {
  if (!(max > 0) || !Number.isFinite(max)) return [0];
  const size = 10 ** Math.floor(Math.log10(max / 4));
  const step = [1, 2, 5, 10].map((n) => n * size).find((n) => max / n <= 5) ?? 10 * size;
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, i) => i * step);
}
