import { useState } from "preact/hooks";
import type { AccountPreferences } from "../../api/server.gen";
import { Panel } from "../../widgets/basics";
import { toast } from "../../widgets/toast";
import { ActionButton } from "../parts/action-button";
import { useCan, useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";

const NUMBERS: readonly (readonly [keyof AccountPreferences, string, string])[] = [
  ["core_hour", "Price per core hour ($)", "0.01"],
  ["gib_hour", "Price per GiB hour of memory ($)", "0.001"],
  ["keep_rows_days", "Keep task data for (days; 0 = server default)", "1"],
  ["keep_sums_days", "Keep totals for (days; 0 = server default)", "1"],
  ["keep_rows_nbytes", "Maximum storage for task data (bytes; 0 = unlimited)", "1000000"],
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
              {NUMBERS.map(([name, label, step]) => (
                <>
                  <dt key={name}>
                    <label for={name}>{label}</label>
                  </dt>
                  <dd>
                    <input
                      id={name}
                      class="txt"
                      type="number"
                      min="0"
                      step={step}
                      value={String(now[name])}
                      disabled={!canAdmin}
                      onInput={(e) => set({ ...changes, [name]: Number(e.currentTarget.value) })}
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
          <input
            class="txt"
            type="number"
            min="0"
            step="0.01"
            aria-label={`Price per core hour of ${key}`}
            value={String(prices.core_hour ?? "")}
            disabled={disabled}
            onInput={(e) => onChange({ ...overrides, [key]: { ...prices, core_hour: Number(e.currentTarget.value) } })}
          />
          <input
            class="txt"
            type="number"
            min="0"
            step="0.001"
            aria-label={`Price per GiB hour of ${key}`}
            value={String(prices.gib_hour ?? "")}
            disabled={disabled}
            onInput={(e) => onChange({ ...overrides, [key]: { ...prices, gib_hour: Number(e.currentTarget.value) } })}
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
