import { CATEGORIES, type Group } from "../api/schema.gen";
import { ACTIVITY_NAMES, categoryOf, groupTime } from "../model/activity";
import { useModel, useNav } from "../model/page/hooks";
import { clock, count, duration, nbytes, UNKNOWN } from "../model/text/format";
import { select } from "../model/time";
import { Panel, ViewHead } from "../widgets/basics";
import { GroupGraph, heightNote, MAX_GROUPS } from "../widgets/graphs/group-graph";
import { PrefixName } from "../widgets/table/prefix-name";
import { DataTable } from "../widgets/table/table";
import { AnswerLine } from "./answer-line";
import { graphAnswer } from "./answers";

const mainActivity = (g: Group) => (groupTime(g) > 0 ? ACTIVITY_NAMES[g.dominant] : UNKNOWN);

export function TaskGroups() {
  const model = useModel();
  const { report, nav } = model;
  const { params } = useNav();
  const chosen = Number(params.item ?? -1);
  if (report.groups.length === 0)
    return (
      <>
        <ViewHead title="Graph" />
        <AnswerLine answer={graphAnswer([])} />
      </>
    );
  const open = (i: number) => nav.set({ item: String(i) });
  const used = new Set(report.groups.flatMap((g) => Object.keys(g.durations_us).map((a) => categoryOf(a) ?? "noncpu")));
  const kinds = CATEGORIES.filter((c) => used.has(c));
  return (
    <>
      <ViewHead title="Graph" />
      <AnswerLine answer={graphAnswer(report.groups)} />
      <Panel
        title="Dependencies"
        note="left to right"
        right={
          <ul class="keylist">
            {kinds.map((k) => (
              <li key={k}>
                <i class={`sw a-${k}`} />
                {ACTIVITY_NAMES[k]}
              </li>
            ))}
          </ul>
        }
        foot={
          <>
            <span>
              {count(Math.min(MAX_GROUPS, report.groups.length))} of {count(report.groups.length)} task groups
            </span>
            <span>{heightNote(report.groups)}</span>
            <span>Stripe: task prefix. Bar: activities</span>
          </>
        }
      >
        <GroupGraph groups={report.groups} chosen={chosen} onOpen={open} />
      </Panel>
      <section class="panel mt" aria-label="Task groups">
        <DataTable
          title="Task groups"
          label="Task groups"
          name="groups"
          rows={report.groups}
          rowKey={(g) => g.group}
          rowTestid="group-row"
          selected={(g) => report.groups.indexOf(g) === chosen}
          onRow={(g) => open(report.groups.indexOf(g))}
          sort={{ id: "start", down: false }}
          columns={[
            {
              id: "group",
              head: "Group",
              value: (g) => g.group,
              cell: (g) => (
                <span class="mono cut" style="max-width:32ch" title={g.group}>
                  {g.group}
                </span>
              ),
            },
            { id: "prefix", head: "Prefix", value: (g) => g.prefix, cell: (g) => <PrefixName prefix={g.prefix} /> },
            { id: "tasks", head: "Tasks", num: true, value: (g) => g.tasks, text: count },
            {
              id: "total",
              head: "Time",
              hint: "Compute, transfer, disk and serialization time of all runs, also wasted ones. Parallel transfers count separately",
              num: true,
              value: groupTime,
              cell: (g) => duration(groupTime(g)),
            },
            { id: "dominant", head: "Main activity", value: mainActivity },
            { id: "nbytes", head: "Output", num: true, value: (g) => g.nbytes, text: nbytes },
            {
              id: "errors",
              head: "Errors",
              num: true,
              value: (g) => g.errors,
              cell: (g) => <span class={g.errors ? "bad" : ""}>{count(g.errors)}</span>,
            },
            { id: "needs", head: "Dependencies", num: true, value: (g) => g.dependencies.length },
            {
              id: "start",
              head: "Start",
              num: true,
              value: (g) => g.start_us,
              cell: (g) => (g.start_us > 0 ? clock(model.since(g.start_us)) : UNKNOWN),
            },
            {
              id: "length",
              head: "Duration",
              num: true,
              value: (g) => g.stop_us - g.start_us,
              cell: (g) =>
                g.stop_us > g.start_us &&
                g.start_us > 0 && (
                  <button
                    type="button"
                    class="link"
                    title="Show in the task stream"
                    onClick={(e) => {
                      e.stopPropagation();
                      nav.go("stream", {}, select(model.axis, model.since(g.start_us), model.since(g.stop_us)));
                    }}
                  >
                    {duration(g.stop_us - g.start_us)}
                  </button>
                ),
            },
          ]}
        />
      </section>
    </>
  );
}
