import type { RunState } from "../api/states.gen";
import { capital } from "../model/activity";
import { counted } from "../model/text/format";

const PATHS = {
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  overview: "M2.5 8.5l5.5-5 5.5 5M4 7.5V13h8V7.5",
  stream: "M2 4h6M10 4h4M2 8h3M7 8h7M2 12h8M12 12h2",
  profile: "M2 3h12v2.5H2zM2 7h8v2.5H2zM2 11h4v2.5H2z",
  fine: "M2.5 13V8M6.2 13V3M9.8 13V6M13.5 13v-3",
  memory: "M2 12l3.5-5 3 3L14 3.5",
  bandwidth: "M2 5.5h11M10.5 3l2.5 2.5L10.5 8M14 10.5H3M5.5 8L3 10.5 5.5 13",
  workers: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01",
  errors: "M8 2.2l6.2 11.3H1.8zM8 6.5v3M8 11.6h.01",
  code: "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5",
  events: "M3 3.5h10M3 6.5h7M3 9.5h10M3 12.5h5",
  groups: "M3 3.5h3v3H3zM10 2.5h3v3h-3zM10 10.5h3v3h-3zM6 5l4-1M6 6l4 5.5",
  path: "M2.5 12.5h3l3-9h5M11 1l2.5 2.5L11 6",
  environment: "M8 2l5.500 3v6L8 14l-5.500-3V5zM2.500 5L8 8l5.500-3M8 8v6",
  coffea:
    "M3 6h8v4.500A2.500 2.500 0 018.500 13h-3A2.500 2.500 0 013 10.500zM11 7h1.500a1.500 1.500 0 010 3H11M5.500 2v2M8.500 2v2",
  search: "M7 12A5 5 0 107 2a5 5 0 000 10zM11 11l3 3",
  share: "M8 10V2M5 4.5L8 2l3 2.5M3 8.5V14h10V8.5",
  down: "M8 2v8M5 7.5L8 10l3-2.5M3 13.5h10",
  chev: "M4 6l4 4 4-4",
  up: "M4 10l4-4 4 4",
  right: "M6 4l4 4-4 4",
  x: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.5l3.2 3L13 4.5",
  cols: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  sun: "M8 11a3 3 0 100-6 3 3 0 000 6zM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
  moon: "M13 9.5A5.5 5.5 0 016.5 3 5.5 5.5 0 1013 9.500z",
  slow: "M2.5 11.5a5.5 5.5 0 1111 0M8 11.5l3-3.5",
  help: "M6 6a2 2 0 113 1.700c-.700.400-1 .800-1 1.600M8 12h.01M8 14.500A6.500 6.500 0 108 1.500a6.500 6.500 0 000 13z",
  coin: "M8 14A6 6 0 108 2a6 6 0 000 12zM10 6.2C9.600 5.500 8.900 5.200 8 5.200c-1.200 0-2 .600-2 1.400 0 2 4 .900 4 2.900 0 .800-.800 1.400-2 1.400-1 0-1.700-.300-2.100-1M8 4v8",
  home: "M2.5 8.5l5.5-5 5.5 5M4 7.5V13h8V7.5",
  user: "M8 8a2.8 2.8 0 100-5.600A2.8 2.8 0 008 8zM2.800 13.800c.600-2.600 2.600-4 5.200-4s4.600 1.400 5.200 4",
  report: "M4 2h6l3 3v9H4zM9.500 2v3.500H13M6 8h5M6 10.500h5",
  zoomin: "M8 3v10M3 8h10",
  zoomout: "M3 8h10",
  whole: "M2.5 3v10M13.5 3v10M5 8h6M7 6L5 8l2 2M9 6l2 2-2 2",
  left: "M10 4L6 8l4 4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, small = false }: { name: IconName; small?: boolean }) {
  return (
    <svg class={small ? "i i12" : "i"} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

const GLYPHS = {
  running: "M6 1.5a4.5 4.5 0 014.5 4.5M6 1.5A4.5 4.5 0 1010.5 6",
  idle: "M4 3v6M8 3v6",
  finished: "M2.5 6.3l2.4 2.3L9.5 3.5",
  erred: "M3 3l6 6M9 3l-6 6",
  lost: "M2 6h2.2M7.8 6H10M5 3.5l-.8 5M7.8 3.5l-.8 5",
  warn: "M6 2v5M6 9.5h.01",
} as const;
export type PillState = keyof typeof GLYPHS;

export function Glyph({ state }: { state: PillState }) {
  return (
    <svg viewBox="0 0 12 12" aria-hidden="true">
      <path d={GLYPHS[state]} />
    </svg>
  );
}

/** A state as colour, glyph and word. */
export function Pill({ state, children }: { state: PillState; children: string }) {
  return (
    <span class={`pill ${state}`}>
      <Glyph state={state} />
      {children}
    </span>
  );
}

export const STATE_PILLS: Record<RunState, PillState> = {
  running: "running",
  idle: "idle",
  finished: "finished",
  failed: "erred",
  unfinished: "lost",
  interrupted: "idle",
  lost: "lost",
};

/** The state of a cluster, a computation or a report. */
export function StatePill({ state }: { state: RunState }) {
  return <Pill state={STATE_PILLS[state]}>{capital(state)}</Pill>;
}

/** The state of a run, and how many workers it lost although it finished. */
export function OutcomePill({ state, lost }: { state: RunState; lost: number }) {
  if (state !== "finished" || lost === 0) return <StatePill state={state} />;
  return <Pill state="lost">{`Finished, ${counted(lost, "worker")} lost`}</Pill>;
}

export function Brand({ href }: { href: string }) {
  return (
    <a class="brand" href={href} aria-label="daskscope: overview">
      <svg viewBox="0 0 20 20" aria-hidden="true">
        <rect x="2" y="3" width="9" height="3" rx="1" fill="var(--accent)" />
        <rect x="6" y="8.5" width="12" height="3" rx="1" fill="var(--text)" />
        <rect x="2" y="14" width="6" height="3" rx="1" fill="var(--accent)" />
        <rect x="10" y="14" width="5" height="3" rx="1" fill="var(--line-strong)" />
      </svg>
      daskscope
    </a>
  );
}
