import type { RecentRun } from "../../api/server.gen";
import { layOutStrip, type StripMark, stripLabel } from "../../model/run-groups";

const WIDTH = 190;
const HEIGHT = 40;

interface Props {
  recent: readonly RecentRun[];
  last: string;
  /** Where a click on the dot of another run leads. Without it, the strip is a picture only. */
  link?: (run: string) => { href: string; title: string };
}

/** The last durations of a name: one dot per run, higher is slower. A list of the runs says the same in words. */
export function RunStrip({ recent, last, link }: Props) {
  const { marks, band, foot } = layOutStrip(recent, last, WIDTH, HEIGHT);
  return (
    <svg
      class="strip"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role={link ? "group" : "img"}
      aria-label={stripLabel(recent)}
      data-testid="run-strip"
    >
      {band && (
        <>
          <rect class="band" x="0" y={band.top} width={WIDTH} height={band.height} rx="2" />
          <path class="median" d={`M0 ${band.median}H${WIDTH}`} />
        </>
      )}
      {foot !== null && <path class="foot" d={`M0 ${foot}H${WIDTH}`} />}
      {marks.map((mark) => {
        const target = mark.id === last ? undefined : link?.(mark.id);
        if (!target) return <Mark key={mark.id} mark={mark} />;
        return (
          <a key={mark.id} href={target.href} aria-label={target.title}>
            <title>{target.title}</title>
            {/* Easier to hit than the dot. */}
            <rect x={mark.x - 4.5} y="0" width="9" height={HEIGHT} fill="transparent" />
            <Mark mark={mark} />
          </a>
        );
      })}
    </svg>
  );
}

function Mark({ mark: { x, y, kind, lost, last } }: { mark: StripMark }) {
  const size = last ? 1.4 : 1;
  const classes = `${kind}${lost ? " lost" : ""}${last ? " last" : ""}`;
  if (kind === "dot" || kind === "open") return <circle class={classes} cx={x} cy={y} r={2.7 * size} />;
  const arm = 2.6 * size;
  return (
    <path class={classes} d={`M${x - arm} ${y - arm}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}`} />
  );
}
