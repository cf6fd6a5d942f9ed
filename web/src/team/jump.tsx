import { useEffect, useRef, useState } from "preact/hooks";
import type { Page } from "../api/server";
import type { Cluster, ErrorGroup, HostedReport } from "../api/server.gen";
import { setTheme } from "../charts/theme";
import { Icon, type IconName } from "../widgets/icon";
import { useTeam } from "./context";
import { SECTIONS } from "./frame";

interface Item {
  group: string;
  text: string;
  hint: string;
  icon: IconName;
  run: () => void;
}

/** Search or jump to: sections, clusters, errors, reports, actions. */
export function Jump({ open, onClose, onKeys }: { open: boolean; onClose: () => void; onKeys: () => void }) {
  const { api, router, account } = useTeam();
  const ref = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [found, setFound] = useState<Item[]>([]);
  const go = (...parts: string[]) => router.go(router.href([account, ...parts]));
  useEffect(() => {
    if (open && !ref.current?.open) {
      setQuery("");
      setAt(0);
      ref.current?.showModal();
    }
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  useEffect(() => {
    if (!open) return;
    let alive = true;
    const search = query.trim();
    const timer = setTimeout(() => {
      const clusters = api.get<Page<Cluster>>("clusters", { since: "all", search, limit: 6 });
      const reports = api.get<Page<HostedReport>>("reports", { search, limit: 4 });
      const errors = api.get<Page<ErrorGroup>>("errors", { limit: 50 });
      void Promise.allSettled([clusters, reports, errors]).then(([c, r, e]) => {
        if (!alive) return;
        const want = search.toLowerCase();
        setFound([
          ...(c.status === "fulfilled" ? c.value.items : []).map((x): Item => ({ group: search ? "Clusters" : "Recent clusters", text: x.name || x.id, hint: `${x.user} · ${x.state}`, icon: "stream", run: () => go("clusters", x.id) })),
          ...(e.status === "fulfilled" ? e.value.items : []).filter((x) => `${x.type} ${x.message}`.toLowerCase().includes(want)).slice(0, 4).map((x): Item => ({ group: "Errors", text: `${x.type}: ${x.message}`, hint: x.state, icon: "errors", run: () => go("errors", x.fingerprint) })),
          ...(r.status === "fulfilled" ? r.value.items : []).map((x): Item => ({ group: "Reports", text: x.title || x.filename, hint: `#${x.id}`, icon: "report", run: () => go("reports", String(x.id)) })),
        ]);
      });
    }, search ? 150 : 0);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [open, query]);
  const want = query.trim().toLowerCase();
  const fixed: Item[] = [
    ...SECTIONS.map(([id, name, letter]): Item => ({ group: "Go to", text: name, hint: `G ${letter.toUpperCase()}`, icon: "right", run: () => go(...(id ? [id] : [])) })),
    { group: "Actions", text: "Light theme", hint: "T", icon: "sun", run: () => setTheme("light") },
    { group: "Actions", text: "Dark theme", hint: "T", icon: "moon", run: () => setTheme("dark") },
    { group: "Actions", text: "Theme of the system", hint: "", icon: "sun", run: () => setTheme("system") },
    { group: "Actions", text: "Keys and help", hint: "?", icon: "help", run: onKeys },
  ];
  const matching = fixed.filter((i) => !want || i.text.toLowerCase().includes(want));
  const items = want ? [...found, ...matching] : [...matching.filter((i) => i.group === "Go to"), ...found, ...matching.filter((i) => i.group !== "Go to")];
  const chosen = Math.min(at, items.length - 1);
  const run = (item: Item | undefined) => {
    if (!item) return;
    ref.current?.close();
    onClose();
    item.run();
  };
  return (
    <dialog class="palette" ref={ref} onClose={onClose} aria-label="Search or jump to" data-testid="jump">
      <div class="q">
        <Icon name="search" />
        <input
          autofocus role="combobox" aria-expanded="true" aria-controls="jump-list" aria-activedescendant={`jump-${chosen}`} aria-label="Search or jump to" placeholder="Cluster, error, report" value={query} data-testid="jump-search"
          onInput={(e) => { setQuery(e.currentTarget.value); setAt(0); }}
          onKeyDown={(e) => {
            if (e.key === "ArrowDown") setAt(Math.min(chosen + 1, items.length - 1));
            else if (e.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
            else if (e.key === "Enter") run(items[chosen]);
            else return;
            e.preventDefault();
          }}
        />
      </div>
      <div class="list" id="jump-list" role="listbox" aria-label="Results">
        {open && items.map((item, i) => (
          <>
            {(i === 0 || items[i - 1].group !== item.group) && <h3 role="presentation">{item.group}</h3>}
            <li key={`${item.group}${item.text}${i}`} id={`jump-${i}`} role="option" aria-selected={i === chosen} class={i === chosen ? "on" : ""} onClick={() => run(item)}>
              <Icon name={item.icon} />
              <span>{item.text}</span>
              <span class="faint">{item.hint}</span>
            </li>
          </>
        ))}
        {items.length === 0 && <p class="callout">Nothing matches “{query}”</p>}
      </div>
    </dialog>
  );
}
