import { useMemo } from "preact/hooks";
import type { Group } from "../api/schema.gen";
import { clock, count, counted, duration, nbytes, UNKNOWN } from "../model/format";
import { useModel, useNav } from "../model/hooks";
import { layers } from "../model/layers";
import { select } from "../model/time";
import { Empty, Panel, ViewHead } from "../widgets/basics";
import { DataTable } from "../widgets/table";
import { PrefixName } from "../widgets/prefix-table";

const MOST = 300;
const WIDTH = 168;
const STEP = WIDTH + 56;
const ROW = 84;
const NAMES = { cpu: "CPU", noncpu: "waiting in task", serialize: "serialize", disk: "disk", transfer: "transfer", failed: "lost or failed", idle: "idle" } as const;

const total = (g: Group) => Object.values(g.durations_us).reduce((a, b) => a + b, 0);

export function Groups() {
  const model = useModel();
  const { report, nav } = model;
  const { params } = useNav();
  const chosen = Number(params.item ?? -1);
  if (report.groups.length === 0) return <><ViewHead title="Task groups" /><Panel><Empty title="No task group was recorded" /></Panel></>;
  const open = (i: number) => nav.set({ item: String(i) });
  const kinds = [...new Set(report.groups.map((g) => g.dominant))];
  return (
    <>
      <ViewHead title="Task groups" note={`${counted(report.groups.length, "group")} and what they need`} />
      <Panel
        title="Dependencies" note="from left to right" right={<ul class="keylist hide-n">{kinds.map((k) => <li key={k}><i class={`sw a-${k}`} />mostly {NAMES[k]}</li>)}</ul>}
        foot={<><span>{count(Math.min(MOST, report.groups.length))} of {count(report.groups.length)} groups</span><span>bar: bytes of results</span></>}
      >
        <Graph groups={report.groups} chosen={chosen} onOpen={open} />
      </Panel>
      <section class="panel mt" aria-label="Groups">
        <DataTable
          title="Groups" label="Task groups" name="groups" rows={report.groups} rowKey={(g) => g.group} rowTestid="group-row" selected={(g) => report.groups.indexOf(g) === chosen} onRow={(g) => open(report.groups.indexOf(g))} sort={{ id: "start", down: false }}
          columns={[
            { id: "group", head: "Group", value: (g) => g.group, cell: (g) => <span class="mono" title={g.group}>{g.group}</span> },
            { id: "prefix", head: "Prefix", value: (g) => g.prefix, cell: (g) => <PrefixName prefix={g.prefix} /> },
            { id: "tasks", head: "Tasks", num: true, value: (g) => g.tasks, cell: (g) => count(g.tasks) },
            { id: "total", head: "Time", num: true, value: total, cell: (g) => duration(total(g)) },
            { id: "dominant", head: "Mostly", value: (g) => NAMES[g.dominant] },
            { id: "nbytes", head: "Output", num: true, value: (g) => g.nbytes, cell: (g) => nbytes(g.nbytes) },
            { id: "errors", head: "Errors", num: true, value: (g) => g.errors, cell: (g) => <span class={g.errors ? "bad" : ""}>{count(g.errors)}</span> },
            { id: "needs", head: "Needs", num: true, value: (g) => g.dependencies.length },
            { id: "start", head: "Start", num: true, value: (g) => g.start_us, cell: (g) => (g.start_us > 0 ? clock(model.since(g.start_us)) : UNKNOWN) },
            { id: "length", head: "Length", num: true, value: (g) => g.stop_us - g.start_us, cell: (g) => g.stop_us > g.start_us && g.start_us > 0 && <button type="button" class="link" title="Show this time in the task stream" onClick={(e) => { e.stopPropagation(); nav.go("stream", {}, select(model.axis, model.since(g.start_us), model.since(g.stop_us))); }}>{duration(g.stop_us - g.start_us)}</button> },
          ]}
        />
      </section>
    </>
  );
}

/** Size is bytes, fill is the activity that took most time. */
function Graph({ groups: all, chosen, onOpen }: { groups: readonly Group[]; chosen: number; onOpen: (i: number) => void }) {
  const groups = all.slice(0, MOST);
  const placed = useMemo(() => layers(groups.map((g) => g.dependencies.filter((d) => d < groups.length))), [all]);
  const most = Math.max(1, ...groups.map((g) => g.nbytes));
  const x = (i: number) => placed[i].layer * STEP + 4;
  const y = (i: number) => placed[i].row * ROW + 4;
  const width = Math.max(...placed.map((p) => p.layer)) * STEP + WIDTH + 8;
  const height = Math.max(...placed.map((p) => p.row)) * ROW + ROW;
  const cut = (text: string, n: number) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);
  return (
    <div class="graph" tabIndex={0} role="region" aria-label="Dependency graph of task groups; the table below lists the same groups">
      <svg width={width} height={height} role="group" aria-label={`${groups.length} task groups`}>
        {groups.flatMap((g, i) => g.dependencies.filter((d) => d < groups.length).map((d) => {
          const a = x(d) + WIDTH;
          const b = x(i);
          const from = y(d) + 24;
          const to = y(i) + 24;
          const on = i === chosen || d === chosen;
          return <path key={`${d}-${i}`} d={`M${a} ${from}C${a + 28} ${from} ${b - 28} ${to} ${b} ${to}`} fill="none" stroke={on ? "var(--accent)" : "var(--line-strong)"} stroke-width={on ? 2 : 1.25} />;
        }))}
        {groups.map((g, i) => (
          <g key={g.group} class="node" tabIndex={0} role="button" transform={`translate(${x(i)},${y(i)})`} onClick={() => onOpen(i)} onKeyDown={(e) => e.key === "Enter" && onOpen(i)}>
            <title>{`${g.group}: mostly ${NAMES[g.dominant]}`}</title>
            <rect class="box" width={WIDTH} height="56" rx="5" fill="var(--bg-raised)" stroke={i === chosen ? "var(--accent)" : g.errors ? "var(--st-erred)" : "var(--line)"} />
            <rect width="5" height="56" rx="2.5" fill={`var(--act-${g.dominant})`} />
            <text x="14" y="19" style="font-weight:500">{cut(g.prefix, 23)}</text>
            <text class="faint" x="14" y="35">{counted(g.tasks, "task")}, {nbytes(g.nbytes)}</text>
            <rect x="14" y="44" width={WIDTH - 24} height="4" rx="2" fill="var(--line-faint)" />
            <rect x="14" y="44" width={Math.max(1, (g.nbytes / most) * (WIDTH - 24))} height="4" rx="2" fill={`var(--act-${g.dominant})`} />
          </g>
        ))}
      </svg>
    </div>
  );
}
