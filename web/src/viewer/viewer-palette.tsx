import { useEffect, useMemo, useState } from "preact/hooks";
import { callOf } from "../model/code";
import { useModel } from "../model/page/hooks";
import { select, wholeRun } from "../model/time";
import { copy } from "../widgets/clipboard";
import { type Command, CommandPalette, commonCommands } from "../widgets/controls/command-palette";
import { viewEntries } from "./views";

const MAX_RESULTS = 8;

/** Search for views, task prefixes, workers, computations, task keys and actions. */
export function ViewerPalette({ open, onClose, onHelp }: { open: boolean; onClose: () => void; onHelp: () => void }) {
  const model = useModel();
  const { nav, report, axis } = model;
  const [query, setQuery] = useState("");
  const [tasks, setTasks] = useState<Command[]>([]);
  useEffect(() => {
    setTasks([]);
    if (!open || query.trim().length < 3) return;
    let alive = true;
    const timer = setTimeout(() => {
      void model.stream.find(query.trim(), MAX_RESULTS).then((found) => {
        if (alive)
          setTasks(
            found.map(({ task, key }) => ({
              group: "Tasks",
              text: key,
              hint: "task",
              icon: "stream",
              run: () => nav.go("stream", { item: String(task) }),
            })),
          );
      });
    }, 150);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [query, open]);
  const fixed = useMemo<Command[]>(
    () => [
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
          text: w.name || w.worker,
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
      ...commonCommands(onHelp),
    ],
    [model],
  );
  const want = query.trim().toLowerCase();
  const seen = new Map<string, number>();
  const items = [...fixed.filter((i) => !want || `${i.text} ${i.hint}`.toLowerCase().includes(want)), ...tasks].filter(
    (i) => {
      const n = (seen.get(i.group) ?? 0) + 1;
      seen.set(i.group, n);
      return n <= (i.group === "Views" ? 99 : MAX_RESULTS);
    },
  );
  return (
    <CommandPalette
      open={open}
      onClose={onClose}
      placeholder="View, prefix, worker or task key"
      query={query}
      onQuery={setQuery}
      items={items}
    />
  );
}
