import type { Report } from "../api/schema.gen";
import type { View } from "../model/page/nav";
import type { IconName } from "../widgets/icon";

export interface RailEntry {
  view: View;
  name: string;
  icon: IconName;
  /** Key to press after G. */
  key: string;
}

type RailGroup = readonly [string, readonly RailEntry[]];

const RAIL: readonly RailGroup[] = [
  [
    "Run",
    [
      { view: "overview", name: "Overview", icon: "overview", key: "o" },
      { view: "stream", name: "Task stream", icon: "stream", key: "s" },
      { view: "profile", name: "Profile", icon: "profile", key: "p" },
      { view: "fine", name: "Fine metrics", icon: "fine", key: "f" },
      { view: "memory", name: "Memory", icon: "memory", key: "m" },
      { view: "bandwidth", name: "Bandwidth", icon: "bandwidth", key: "b" },
      { view: "workers", name: "Workers", icon: "workers", key: "w" },
      { view: "errors", name: "Errors", icon: "errors", key: "e" },
      { view: "coffea", name: "coffea", icon: "coffea", key: "x" },
    ],
  ],
  [
    "Details",
    [
      { view: "code", name: "Code", icon: "code", key: "c" },
      { view: "groups", name: "Task groups", icon: "groups", key: "g" },
      { view: "path", name: "Critical path", icon: "path", key: "r" },
      { view: "events", name: "Events and logs", icon: "events", key: "l" },
      { view: "environment", name: "Environment", icon: "environment", key: "n" },
      { view: "tables", name: "Tables", icon: "tables", key: "t" },
    ],
  ],
];

/** Return the views of a report in groups. The one about coffea is only there if coffea was used. */
export function viewGroups(report: Report): readonly RailGroup[] {
  const isShown = ({ view }: RailEntry) => view !== "coffea" || report.coffea.length > 0;
  return RAIL.map(([title, views]) => [title, views.filter(isShown)] as const);
}

export function viewEntries(report: Report): readonly RailEntry[] {
  return viewGroups(report).flatMap(([, views]) => views);
}

export function viewName(view: View): string {
  return RAIL.flatMap(([, views]) => views).find((e) => e.view === view)?.name ?? view;
}
