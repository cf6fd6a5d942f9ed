import type { View } from "../model/nav";
import type { IconName } from "./icon";

export interface RailEntry {
  view: View;
  name: string;
  icon: IconName;
  /** Key to press after G. */
  key: string;
}

export const RAIL: readonly (readonly [string, readonly RailEntry[]])[] = [
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

export const ENTRIES: readonly RailEntry[] = RAIL.flatMap(([, views]) => views);

export function viewName(view: View): string {
  return ENTRIES.find((e) => e.view === view)?.name ?? view;
}
