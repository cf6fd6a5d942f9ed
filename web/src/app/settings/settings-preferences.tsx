import { useState } from "preact/hooks";
import type { AccountPreferences } from "../../api/server.gen";
import { Panel } from "../../widgets/basics";
import { toast } from "../../widgets/toast";
import { ActionButton } from "../parts/action-button";
import { useCan, useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";

interface NumberField {
  name: "core_hour" | "gib_hour" | "keep_rows_days" | "keep_sums_days" | "keep_rows_nbytes";
  label: string;
  unit: string;
  step: string;
  /** What one of the unit is in the setting. */
  each: number;
}

const NUMBERS: readonly NumberField[] = [
  { name: "core_hour", label: "Price per core hour", unit: "$", step: "0.01", each: 1 },
  { name: "gib_hour", label: "Price per GiB hour of memory", unit: "$", step: "0.001", each: 1 },
  { name: "keep_rows_days", label: "Keep task data for", unit: "days; 0 = server default", step: "1", each: 1 },
  { name: "keep_sums_days", label: "Keep totals for", unit: "days; 0 = server default", step: "1", each: 1 },
  {
    name: "keep_rows_nbytes",
    label: "Maximum storage for task data",
    unit: "GB; 0 = unlimited",
    step: "any",
    each: 1e9,
  },
];

export function Preferences() {
  const { api, account } = useTeam();
  const canAdmin = useCan("admin");
  const saved = useResource<AccountPreferences>(() => api.get("preferences"), [account]);
  const [changes, set] = useState<Partial<AccountPreferences>>({});
  const save = () =>
    api.send("PATCH", "preferences", changes).then(() => {
      set({});
      saved.reload();
      toast("Saved");
    });
  return (
    <Panel
      title="Prices, privacy and retention"
      note="Costs are estimates based on these prices"
      class="mt"
      testid="preferences"
    >
      <Loaded from={saved}>
        {(p) => {
          const now = { ...p, ...changes };
          return (
            <dl class="kv form">
              {NUMBERS.map(({ name, label, unit, step, each }) => (
                <>
                  <dt key={name}>
                    <label for={name}>
                      {label} ({unit})
                    </label>
                  </dt>
                  <dd>
                    <NumberInput
                      id={name}
                      step={step}
                      value={now[name] / each}
                      disabled={!canAdmin}
                      onNumber={(n) => set({ ...changes, [name]: each > 1 ? Math.round(each * n) : n })}
                    />
                  </dd>
                </>
              ))}
              <dt>
                <label for="visibility">Visibility of new reports</label>
              </dt>
              <dd>
                <select
                  id="visibility"
                  class="sel"
                  value={now.visibility}
                  disabled={!canAdmin}
                  onChange={(e) =>
                    set({ ...changes, visibility: e.currentTarget.value as AccountPreferences["visibility"] })
                  }
                >
                  <option value="public">anyone with the link</option>
                  <option value="private">members</option>
                </select>
              </dd>
              <dt>
                Prices by tag, name or queue <br /> <small class="faint">per core hour, per GiB hour ($)</small>
              </dt>
              <dd>
                <PriceOverrides
                  overrides={now.price_overrides}
                  disabled={!canAdmin}
                  onChange={(price_overrides) => set({ ...changes, price_overrides })}
                />
              </dd>
            </dl>
          );
        }}
      </Loaded>
      {canAdmin && (
        <div class="pfoot">
          <ActionButton
            class="primary push"
            run={save}
            disabled={Object.keys(changes).length === 0}
            testid="save-preferences"
          >
            Save
          </ActionButton>
        </div>
      )}
    </Panel>
  );
}

interface NumberInputProps {
  id?: string;
  label?: string;
  step: string;
  value: number | null | undefined;
  disabled: boolean;
  onNumber: (value: number) => void;
}

/** A field for a number that keeps its text while it is typed: "1.0" is on the way to "1.05". An empty field changes nothing. */
function NumberInput({ id, label, step, value, disabled, onNumber }: NumberInputProps) {
  const [text, setText] = useState<string | null>(null);
  const isTyped = text !== null && (text === "" || Number(text) === value);
  return (
    <input
      id={id}
      class="txt"
      type="number"
      min="0"
      step={step}
      aria-label={label}
      value={isTyped ? text : String(value ?? "")}
      disabled={disabled}
      onInput={(e) => {
        const typed = e.currentTarget.value;
        setText(typed);
        if (typed !== "") onNumber(Number(typed));
      }}
      onBlur={() => setText(null)}
    />
  );
}

function PriceOverrides({
  overrides,
  disabled,
  onChange,
}: {
  overrides: AccountPreferences["price_overrides"];
  disabled: boolean;
  onChange: (next: AccountPreferences["price_overrides"]) => void;
}) {
  const [name, setName] = useState("");
  return (
    <>
      {Object.entries(overrides).map(([key, prices]) => (
        <div key={key} class="override">
          <span class="tag">{key}</span>
          <NumberInput
            step="0.01"
            label={`Price per core hour of ${key}`}
            value={prices.core_hour}
            disabled={disabled}
            onNumber={(core_hour) => onChange({ ...overrides, [key]: { ...prices, core_hour } })}
          />
          <NumberInput
            step="0.001"
            label={`Price per GiB hour of ${key}`}
            value={prices.gib_hour}
            disabled={disabled}
            onNumber={(gib_hour) => onChange({ ...overrides, [key]: { ...prices, gib_hour } })}
          />
          {!disabled && (
            <button
              type="button"
              class="link"
              onClick={() => onChange(Object.fromEntries(Object.entries(overrides).filter(([other]) => other !== key)))}
            >
              Remove
            </button>
          )}
        </div>
      ))}
      {!disabled && (
        <div class="override">
          <input
            class="txt"
            aria-label="Tag, name or queue"
            placeholder="Tag, name or queue"
            value={name}
            onInput={(e) => setName(e.currentTarget.value)}
          />
          <button
            type="button"
            class="btn sm"
            disabled={!name.trim()}
            onClick={() => {
              onChange({ ...overrides, [name.trim()]: { core_hour: 0.05, gib_hour: 0.005 } });
              setName("");
            }}
          >
            Add
          </button>
        </div>
      )}
    </>
  );
}
