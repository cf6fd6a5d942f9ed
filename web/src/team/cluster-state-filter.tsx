import type { ClusterState } from "../api/server.gen";
import { count } from "../model/format";

const STATES: readonly (readonly [ClusterState, string])[] = [
  ["running", "Running"],
  ["idle", "Idle"],
  ["finished", "Finished"],
  ["lost", "Lost"],
];

interface Props {
  /** Number of clusters by state. */
  states: Readonly<Record<string, number>>;
  state: string;
  onChange: (state: string) => void;
}

/** Buttons that filter clusters by state. */
export function StateFilter({ states, state, onChange }: Props) {
  const total = Object.values(states).reduce((a, b) => a + b, 0);
  return (
    <div class="seg" role="group" aria-label="State">
      <button type="button" aria-pressed={state === ""} onClick={() => onChange("")}>
        All<em>{count(total)}</em>
      </button>
      {STATES.map(([id, word]) => (
        <button
          type="button"
          key={id}
          aria-pressed={state === id}
          onClick={() => onChange(id)}
          data-testid={`state-${id}`}
        >
          {word}
          <em>{count(states[id] ?? 0)}</em>
        </button>
      ))}
    </div>
  );
}
