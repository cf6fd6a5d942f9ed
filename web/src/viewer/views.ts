import { type ComponentChildren, createContext } from "preact";
import type { Answer, Report } from "../api/schema.gen";
import type { RecentRun } from "../api/server.gen";
import type { View } from "../model/page/nav";
import type { IconName } from "../widgets/icon";

export interface RailEntry {
  view: View;
  name: string;
  icon: IconName;
  /** Key to press after G. */
  key: string;
}

const RAIL: readonly RailEntry[] = [
  { view: "overview", name: "Overview", icon: "overview", key: "o" },
  { view: "stream", name: "Timeline", icon: "stream", key: "t" },
  { view: "profile", name: "Profile", icon: "profile", key: "p" },
  { view: "fine", name: "Time", icon: "fine", key: "i" },
  { view: "memory", name: "Memory", icon: "memory", key: "m" },
  { view: "bandwidth", name: "Network", icon: "bandwidth", key: "n" },
  { view: "workers", name: "Workers", icon: "workers", key: "w" },
  { view: "groups", name: "Graph", icon: "groups", key: "g" },
  { view: "errors", name: "Failures", icon: "errors", key: "f" },
  { view: "coffea", name: "coffea", icon: "coffea", key: "c" },
];

/** Return the views of a report. The one about coffea is only there if coffea was used, so far as is known. */
export function viewEntries(report: Report | null): readonly RailEntry[] {
  return RAIL.filter(({ view }) => view !== "coffea" || (report !== null && report.coffea.length > 0));
}

export function viewName(view: View): string {
  return RAIL.find((e) => e.view === view)?.name ?? view;
}

/** What the app adds to the views of a run. A report file has nothing of it. */
export interface Frame {
  /** Whether the title and the state of the run stand above the views. */
  titled: boolean;
  /** Panels at the end of the overview. */
  below: ComponentChildren;
  /** Other runs of the same name or code, to compare the duration with; null if there are none. */
  history: RunHistory | null;
  /** Replaces the headline of the document, which cannot know that a cluster is lost. */
  answer: Answer | null;
}

/** A run among the last ones of its name. */
export interface RunHistory {
  run: RecentRun;
  recent: readonly RecentRun[];
  /** The comparison of the run with another one. */
  compare: (other: string) => string;
}

export const NO_FRAME: Frame = { titled: false, below: null, history: null, answer: null };
export const FrameContext = createContext<Frame>(NO_FRAME);
