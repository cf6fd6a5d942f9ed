import { useState } from "preact/hooks";
import type { AccountPreferences } from "../api/server.gen";

export function PriceOverrides({
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
