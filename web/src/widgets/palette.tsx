import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { setTheme } from "../charts/theme";
import { useModel } from "../model/hooks";
import { select, wholeRun } from "../model/time";
import { copy } from "./basics";
import { Icon, type IconName } from "./icon";
import { ENTRIES } from "./views";

interface Item {
  group: string;
  text: string;
  hint: string;
  icon: IconName;
  run: () => void;
}

const MOST = 8;

/** Search or jump to: views, prefixes, workers, computations, tasks by key, actions. */
export function Palette({ open, onClose, onHelp }: { open: boolean; onClose: () => void; onHelp: () => void }) {
  const model = useModel();
  const { nav, report, axis } = model;
  const ref = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [tasks, setTasks] = useState<Item[]>([]);
  useEffect(() => {
    if (open && !ref.current?.open) {
      setQuery("");
      setAt(0);
      ref.current?.showModal();
    }
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  useEffect(() => {
    setTasks([]);
    if (!open || query.trim().length < 3) return;
    let alive = true;
    const timer = setTimeout(() => {
      void model.stream.find(query.trim(), MOST).then((found) => {
        if (alive) setTasks(found.map(({ task, key }) => ({ group: "Tasks", text: key, hint: "task", icon: "stream", run: () => nav.go("stream", { item: String(task) }) })));
      });
    }, 150);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [query, open]);
  const fixed = useMemo<Item[]>(
    () => [
      ...ENTRIES.map((e): Item => ({ group: "Views", text: e.name, hint: `G ${e.key.toUpperCase()}`, icon: e.icon, run: () => nav.go(e.view) })),
      ...report.prefixes.map((p): Item => ({ group: "Prefixes", text: p.prefix, hint: "profile", icon: "profile", run: () => nav.go("profile", { prefix: p.prefix }) })),
      ...report.workers.map((w, i): Item => ({ group: "Workers", text: w.name || w.worker, hint: w.worker, icon: "workers", run: () => nav.go("workers", { item: String(i) }) })),
      ...report.computations.map((c): Item => ({ group: "Computations", text: c.code.split("\n").at(-1) ?? c.computation, hint: c.state, icon: "code", run: () => nav.go("overview", {}, select(axis, model.since(c.start_us), model.since(c.stop_us || report.stop_us))) })),
      { group: "Actions", text: "Select the whole run", hint: "Esc", icon: "whole", run: () => nav.select(wholeRun(axis)) },
      { group: "Actions", text: "Copy link to this view", hint: "", icon: "share", run: () => copy(nav.link(), "Link copied") },
      { group: "Actions", text: "Light theme", hint: "T", icon: "sun", run: () => setTheme("light") },
      { group: "Actions", text: "Dark theme", hint: "T", icon: "moon", run: () => setTheme("dark") },
      { group: "Actions", text: "Theme of the system", hint: "", icon: "sun", run: () => setTheme("system") },
      { group: "Actions", text: "Keys and help", hint: "?", icon: "help", run: onHelp },
    ],
    [model],
  );
  const want = query.trim().toLowerCase();
  const seen = new Map<string, number>();
  const items = [...fixed.filter((i) => !want || `${i.text} ${i.hint}`.toLowerCase().includes(want)), ...tasks].filter((i) => {
    const n = (seen.get(i.group) ?? 0) + 1;
    seen.set(i.group, n);
    return n <= (i.group === "Views" ? 99 : MOST);
  });
  const chosen = Math.min(at, items.length - 1);
  const run = (item: Item | undefined) => {
    if (!item) return;
    ref.current?.close();
    onClose();
    item.run();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt((now) => Math.min(now + 1, items.length - 1));
    else if (event.key === "ArrowUp") setAt((now) => Math.max(Math.min(now, items.length - 1) - 1, 0));
    else if (event.key === "Enter") run(items[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog class="palette" ref={ref} onClose={onClose} aria-label="Search or jump to" data-testid="palette">
      <div class="q">
        <Icon name="search" />
        <input autofocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={`palette-${chosen}`} aria-label="Search or jump to" placeholder="View, prefix, worker, task key" value={query} data-testid="palette-search"
          onInput={(e) => { setQuery(e.currentTarget.value); setAt(0); }} onKeyDown={onKey} />
      </div>
      <div class="list" id="palette-list" role="listbox" aria-label="Results">
        {open && items.map((item, i) => (
          <Line key={`${item.group}${item.text}${i}`} item={item} first={i === 0 || items[i - 1].group !== item.group} index={i} selected={i === chosen} onRun={() => run(item)} />
        ))}
        {items.length === 0 && <p class="callout">Nothing matches “{query}”</p>}
      </div>
    </dialog>
  );
}

function Line({ item, first, index, selected, onRun }: { item: Item; first: boolean; index: number; selected: boolean; onRun: () => void }) {
  const ref = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (selected) ref.current?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  return (
    <>
      {first && <h3 role="presentation">{item.group}</h3>}
      <li ref={ref} id={`palette-${index}`} role="option" aria-selected={selected} class={selected ? "on" : ""} onClick={onRun}>
        <Icon name={item.icon} />
        <span>{item.text}</span>
        <span class="faint">{item.hint}</span>
      </li>
    </>
  );
}
