import { useMemo } from "preact/hooks";
import type { Group } from "../../api/schema.gen";
import { ACTIVITY_NAMES, categoryOf, groupTime } from "../../model/activity";
import { layOutGraph } from "../../model/layers";
import { useModel } from "../../model/page/hooks";
import { counted, duration, nbytes } from "../../model/text/format";

/** More groups are unreadable. The table lists all of them. */
export const MAX_GROUPS = 300;
const WIDTH = 168;
const STEP = WIDTH + 56;
/** Room for two lines of text and a bar. */
const MIN_HEIGHT = 44;
const MAX_HEIGHT = 140;
const GAP = 12;
const EDGE = 4;

/** A wide graph shrinks to fit, as long as its text can be read. */
const SMALLEST = 0.8;

/** Height of the bar of activities below the text. */
const BAR = 4;

const maxTime = (groups: readonly Group[]) => groups.reduce((a, g) => Math.max(a, groupTime(g)), 0);

/** Heights in proportion to the time, but tall enough for the label. */
function heightsOf(groups: readonly Group[]): number[] {
  const top = maxTime(groups);
  return groups.map((g) => Math.max(MIN_HEIGHT, top > 0 ? (groupTime(g) / top) * MAX_HEIGHT : 0));
}

export function heightNote(groups: readonly Group[]): string {
  const top = maxTime(groups.slice(0, MAX_GROUPS));
  if (top === 0) return "No times recorded";
  return `Taller: more time, up to ${duration(top)}`;
}

interface Props {
  groups: readonly Group[];
  chosen: number;
  onOpen: (i: number) => void;
}

/** Task groups and their dependencies. Height shows time; the stripe is the colour of the prefix, the bar below the text shows the activities. */
export function GroupGraph({ groups: all, chosen, onOpen }: Props) {
  const groups = useMemo(() => all.slice(0, MAX_GROUPS), [all]);
  const heights = useMemo(() => heightsOf(groups), [groups]);
  const { nodes, layers, height } = useMemo(
    () =>
      layOutGraph(
        groups.map((g) => g.dependencies),
        heights,
        GAP,
      ),
    [groups],
  );
  const x = (i: number) => nodes[i].layer * STEP + EDGE;
  const y = (i: number) => nodes[i].y + EDGE;
  const middle = (i: number) => y(i) + heights[i] / 2;
  const [width, tall] = [(layers - 1) * STEP + WIDTH + 2 * EDGE, height + 2 * EDGE];
  return (
    <div
      class="graph groups"
      tabIndex={0}
      role="region"
      aria-label="Dependency graph of task groups. The table below lists the same groups."
    >
      <svg
        viewBox={`0 0 ${width} ${tall}`}
        style={{ width: "100%", minWidth: `${Math.round(width * SMALLEST)}px`, maxWidth: `${width}px` }}
        role="group"
        aria-label={counted(groups.length, "task group")}
      >
        {groups.flatMap((g, i) =>
          g.dependencies
            .filter((d) => d < groups.length)
            .map((d) => {
              const a = x(d) + WIDTH;
              const b = x(i);
              const on = i === chosen || d === chosen;
              return (
                <path
                  key={`${d}-${i}`}
                  d={`M${a} ${middle(d)}C${a + 28} ${middle(d)} ${b - 28} ${middle(i)} ${b} ${middle(i)}`}
                  fill="none"
                  stroke={on ? "var(--accent)" : "var(--line-strong)"}
                  stroke-width={on ? 2 : 1.25}
                />
              );
            }),
        )}
        {groups.map((g, i) => (
          <Node
            key={g.group}
            group={g}
            height={heights[i]}
            at={`translate(${x(i)},${y(i)})`}
            chosen={i === chosen}
            onOpen={() => onOpen(i)}
          />
        ))}
      </svg>
    </div>
  );
}

const cut = (text: string, n: number) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);

function Node({
  group: g,
  height,
  at,
  chosen,
  onOpen,
}: {
  group: Group;
  height: number;
  at: string;
  chosen: boolean;
  onOpen: () => void;
}) {
  const model = useModel();
  const time = groupTime(g);
  const mostly = time > 0 ? `, mostly ${ACTIVITY_NAMES[g.dominant]}` : "";
  const failed = g.errors > 0 ? `${g.errors} failed` : "";
  const name = cut(g.prefix, failed ? 15 : 22);
  const tasks = `${duration(time)}, ${counted(g.tasks, "task")}`;
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onOpen();
  };
  return (
    <g
      class="node"
      tabindex={0}
      role="button"
      aria-pressed={chosen}
      transform={at}
      onClick={onOpen}
      onKeyDown={onKey}
      data-testid="group-node"
    >
      <title>{`${g.group}: ${tasks}, ${nbytes(g.nbytes)}${mostly}${failed && `, ${failed}`}`}</title>
      <rect class="box" width={WIDTH} height={height} rx="3" />
      <rect width="4" height={height} rx="2" fill={`var(${model.colour(g.prefix)})`} />
      <text x="12" y="16" style={{ fontWeight: 600 }}>
        {name}
      </text>
      {failed && (
        <text x={WIDTH - 8} y="16" text-anchor="end" style={{ fill: "var(--st-erred)" }}>
          {failed}
        </text>
      )}
      <text x="12" y="30">
        {tasks}
      </text>
      <Activities group={g} />
    </g>
  );
}

/** The time of a group by activity, as a bar that is as wide as its node. */
function Activities({ group: g }: { group: Group }) {
  const all = groupTime(g);
  const width = WIDTH - 20;
  let at = 12;
  return (
    <>
      {Object.entries(g.durations_us)
        .filter(([, us]) => us > 0)
        .map(([action, us]) => {
          const x = at;
          at += (us / all) * width;
          const fill = `var(--act-${categoryOf(action) ?? "noncpu"})`;
          return (
            <rect key={action} x={x} y={MIN_HEIGHT - BAR - 3} width={(us / all) * width} height={BAR} fill={fill} />
          );
        })}
    </>
  );
}
