import { useEffect, useState } from "preact/hooks";
import type { Page } from "../../api/server";
import type { Cluster, ErrorGroup, HostedReport } from "../../api/server.gen";
import type { Model } from "../../model/model";
import { ago } from "../../model/text/format";
import { useRunCommands } from "../../viewer/viewer-palette";
import { type Command, CommandPalette, commonCommands } from "../../widgets/controls/command-palette";
import { useTeam } from "./context";

interface Props {
  /** The run that the page shows. */
  run: Model | null;
  open: boolean;
  onClose: () => void;
  onHelp: () => void;
}

/** Search for everything in the open run, and for sections, runs, errors, reports and actions. */
export function AppPalette({ run, open, onClose, onHelp }: Props) {
  const { api, router, account } = useTeam();
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<Command[]>([]);
  const go = (...parts: string[]) => router.go(router.href([account, ...parts]));
  useEffect(() => {
    if (!open) return;
    let alive = true;
    const search = query.trim();
    const timer = setTimeout(
      () => {
        const clusters = api.get<Page<Cluster>>("clusters", { since: "all", search, limit: 6 });
        const reports = api.get<Page<HostedReport>>("reports", { search, limit: 4 });
        const errors = api.get<Page<ErrorGroup>>("errors", { search, limit: 4 });
        void Promise.allSettled([clusters, reports, errors]).then(([c, r, e]) => {
          if (!alive) return;
          setFound([
            ...(c.status === "fulfilled" ? c.value.items : []).map(
              (x): Command => ({
                group: search ? "Runs" : "Recent runs",
                text: x.name || x.id,
                hint: `${x.user} · ${x.state}${x.start ? ` · ${ago(Date.now() * 1000 - Date.parse(x.start) * 1000)}` : ""}`,
                icon: "stream",
                run: () => go("clusters", x.id),
              }),
            ),
            ...(e.status === "fulfilled" ? e.value.items : []).map(
              (x): Command => ({
                group: "Errors",
                text: `${x.type}: ${x.message}`,
                hint: x.state,
                icon: "errors",
                run: () => go("errors", x.fingerprint),
              }),
            ),
            ...(r.status === "fulfilled" ? r.value.items : []).map(
              (x): Command => ({
                group: "Reports",
                text: x.title || x.filename,
                hint: `#${x.id}`,
                icon: "report",
                run: () => go("reports", String(x.id)),
              }),
            ),
          ]);
        });
      },
      search ? 150 : 0,
    );
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [open, query]);
  const inRun = useRunCommands(run, query, open);
  const want = query.trim().toLowerCase();
  const fixed: Command[] = [
    ...ALL_SECTIONS.map(
      ([id, name, letter]): Command => ({
        group: "Go to",
        text: name,
        hint: `G ${letter.toUpperCase()}`,
        icon: "right",
        run: () => go(...(id ? [id] : [])),
      }),
    ),
    { group: "Go to", text: "Compare", hint: "", icon: "right", run: () => go("compare") },
    ...commonCommands(onHelp),
  ];
  const matching = fixed.filter((i) => !want || i.text.toLowerCase().includes(want));
  const items = want
    ? [...inRun, ...found, ...matching]
    : [
        ...inRun.filter((i) => i.group === "Views"),
        ...matching.filter((i) => i.group === "Go to"),
        ...found,
        ...matching.filter((i) => i.group !== "Go to"),
      ];
  return (
    <CommandPalette
      open={open}
      onClose={onClose}
      placeholder={run ? "View, task key, run or error" : "Run, error or report"}
      query={query}
      onQuery={setQuery}
      items={items}
    />
  );
}

/** Sections of the navigation: path, name, and the key after G that opens it. */
export const SECTIONS = [
  ["", "Home", "h"],
  ["runs", "Runs", "r"],
  ["errors", "Errors", "e"],
  ["usage", "Usage", "u"],
  ["explore", "Explore", "x"],
] as const;

/** All sections: reports are a part of Runs, and settings are in the menu of the account. */
export const ALL_SECTIONS = [...SECTIONS, ["reports", "Reports", "p"], ["settings", "Settings", "s"]] as const;
