import { useMemo } from "preact/hooks";
import type { Group } from "../../api/schema.gen";
import { ACTIVITY_NAMES } from "../../model/activity";
import { layOutGraph } from "../../model/layers";
import { counted, nbytes } from "../../model/text/format";

/** More groups are unreadable. The table lists all of them. */
export const MAX_GROUPS = 300;
const WIDTH = 168;
const STEP = WIDTH + 56;
/** Room for two lines of text. */
const MIN_HEIGHT = 40;
const MAX_HEIGHT = 140;
const GAP = 12;
const EDGE = 4;

const maxBytes = (groups: readonly Group[]) => groups.reduce((a, g) => Math.max(a, g.nbytes), 0);

/** Heights in proportion to the bytes, but tall enough for the label. */
function heightsOf(groups: readonly Group[]): number[] {
  const top = maxBytes(groups);
  return groups.map((g) => Math.max(MIN_HEIGHT, top > 0 ? (g.nbytes / top) * MAX_HEIGHT : 0));
}

export function heightNote(groups: readonly Group[]): string {
  const top = maxBytes(groups.slice(0, MAX_GROUPS));
  if (top === 0) return "No result sizes recorded";
  return `Height: bytes of results, from ${nbytes((top * MIN_HEIGHT) / MAX_HEIGHT)} or less to ${nbytes(top)}`;
}

interface Props {
  groups: readonly Group[];
  chosen: number;
  onOpen: (i: number) => void;
}

/** Task groups and their dependencies. Height shows bytes, colour the activity that took most time. */
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
  return (
    <div
      class="graph groups"
      tabIndex={0}
      role="region"
      aria-label="Dependency graph of task groups. The table below lists the same groups."
    >
      <svg
        width={(layers - 1) * STEP + WIDTH + 2 * EDGE}
        height={height + 2 * EDGE}
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
  const on = `var(--act-${g.dominant}-on)`;
  const size = nbytes(g.nbytes);
  const mostly = Object.values(g.durations_us).some((us) => us > 0) ? `, mostly ${ACTIVITY_NAMES[g.dominant]}` : "";
  const failed = g.errors > 0 ? `${g.errors} failed` : "";
  const name = cut(g.prefix, failed ? 16 : 23);
  const tasks = `${counted(g.tasks, "task")}, ${size}`;
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
      <title>{`${g.group}: ${tasks}${mostly}${failed && `, ${failed}`}`}</title>
      <rect
        class="box"
        width={WIDTH}
        height={height}
        rx="3"
        fill={`var(--act-${g.dominant})`}
        stroke={chosen ? "var(--text)" : "none"}
      />
      <text x="10" y="17" style={{ fill: on, fontWeight: 600 }}>
        {name}
      </text>
      {failed && (
        <text x={WIDTH - 8} y="17" text-anchor="end" style={{ fill: on }}>
          {failed}
        </text>
      )}
      <text x="10" y="32" style={{ fill: on }}>
        {tasks}
      </text>
    </g>
  );
}
