import { RUN_STATES } from "../api/states.gen";
import { capital } from "../model/activity";
import { count } from "../model/format";

interface Props {
  /** Number of clusters by state. */
  states: Readonly<Record<string, number>>;
  state: string;
  onChange: (state: string) => void;
}

/** Buttons that filter clusters by state, for states that any cluster is in. */
export function StateFilter({ states, state, onChange }: Props) {
  const total = Object.values(states).reduce((a, b) => a + b, 0);
  return (
    <div class="seg" role="group" aria-label="State">
      <button type="button" aria-pressed={state === ""} onClick={() => onChange("")}>
        All<em>{count(total)}</em>
      </button>
      {RUN_STATES.filter((id) => states[id] || id === state).map((id) => (
        <button
          type="button"
          key={id}
          aria-pressed={state === id}
          onClick={() => onChange(id)}
          data-testid={`state-${id}`}
        >
          {capital(id)}
          <em>{count(states[id] ?? 0)}</em>
        </button>
      ))}
    </div>
  );
}
