import { useEffect, useMemo, useState } from "preact/hooks";
import { callOf } from "../model/code";
import type { Model } from "../model/model";
import { useModel } from "../model/page/hooks";
import { select, wholeRun } from "../model/time";
import { copy } from "../widgets/clipboard";
import { type Command, CommandPalette, commonCommands } from "../widgets/controls/command-palette";
import { viewEntries } from "./views";

const MAX_RESULTS = 8;

/** Return the commands of a run: views, task prefixes, workers, computations, task keys and actions; empty without a run. */
export function useRunCommands(model: Model | null, query: string, open: boolean): Command[] {
  const [tasks, setTasks] = useState<Command[]>([]);
  useEffect(() => {
    setTasks([]);
    if (!open || !model || query.trim().length < 3) return;
    let alive = true;
    const timer = setTimeout(() => {
      const find = async () => {
        const { tasks } = await model.stream.find(query.trim(), MAX_RESULTS);
        return Promise.all(tasks.map(async (task) => ({ task, key: (await model.stream.detail(task))?.key ?? "" })));
      };
      void find().then((found) => {
        if (alive)
          setTasks(
            found.map(({ task, key }) => ({
              group: "Tasks",
              text: key,
              hint: "task",
              icon: "stream",
              run: () => model.nav.go("stream", { item: String(task) }),
            })),
          );
      });
    }, 150);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [query, open, model]);
  const fixed = useMemo(() => (model ? fixedCommands(model) : []), [model]);
  const want = query.trim().toLowerCase();
  const seen = new Map<string, number>();
  return [...fixed.filter((i) => !want || `${i.text} ${i.hint}`.toLowerCase().includes(want)), ...tasks].filter((i) => {
    const n = (seen.get(i.group) ?? 0) + 1;
    seen.set(i.group, n);
    return n <= (i.group === "Views" ? 99 : MAX_RESULTS);
  });
}

function fixedCommands(model: Model): Command[] {
  const { nav, report, axis } = model;
  return [
    ...viewEntries(report).map(
      (e): Command => ({
        group: "Views",
        text: e.name,
        hint: `G ${e.key.toUpperCase()}`,
        icon: e.icon,
        run: () => nav.go(e.view),
      }),
    ),
    ...report.prefixes.map(
      (p): Command => ({
        group: "Task prefixes",
        text: p.prefix,
        hint: "profile",
        icon: "profile",
        run: () => nav.go("profile", { prefix: p.prefix }),
      }),
    ),
    ...report.workers.map(
      (w, i): Command => ({
        group: "Workers",
        text: model.worker(w.worker),
        hint: w.worker,
        icon: "workers",
        run: () => nav.go("workers", { item: String(i) }),
      }),
    ),
    ...report.computations.map(
      (c): Command => ({
        group: "Computations",
        text: callOf(c) || c.computation,
        hint: c.state,
        icon: "code",
        run: () =>
          nav.go("overview", {}, select(axis, model.since(c.start_us), model.since(c.stop_us || report.stop_us))),
      }),
    ),
    {
      group: "Actions",
      text: "Select whole run",
      hint: "Esc",
      icon: "whole",
      run: () => nav.select(wholeRun(axis)),
    },
    {
      group: "Actions",
      text: "Copy link to this view",
      hint: "",
      icon: "share",
      run: () => copy(nav.link(), "Link copied"),
    },
  ];
}

/** The palette of a report file. In the app, the palette of the app also finds everything in the open run. */
export function ViewerPalette({ open, onClose, onHelp }: { open: boolean; onClose: () => void; onHelp: () => void }) {
  const [query, setQuery] = useState("");
  const found = useRunCommands(useModel(), query, open);
  const want = query.trim().toLowerCase();
  const common = commonCommands(onHelp).filter((i) => !want || i.text.toLowerCase().includes(want));
  return (
    <CommandPalette
      open={open}
      onClose={onClose}
      placeholder="View, prefix, worker or task key"
      query={query}
      onQuery={setQuery}
      items={[...found, ...common]}
    />
  );
}
