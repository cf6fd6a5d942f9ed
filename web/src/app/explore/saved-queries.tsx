import { useState } from "preact/hooks";
import { EXAMPLES, parseSaved, type SavedQuery, withSaved } from "../../model/text/sql";

const KEY = "daskscope-queries";

function load(): SavedQuery[] {
  try {
    return parseSaved(localStorage.getItem(KEY));
  } catch {
    // The browser allows no storage.
    return [];
  }
}

function store(queries: readonly SavedQuery[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(queries));
  } catch {
    // They stay until the page is closed.
  }
}

/** Examples and the queries that the user saved in this browser. */
export function SavedQueries({ query, onPick }: { query: string; onPick: (query: string) => void }) {
  const [saved, set] = useState(load);
  const change = (next: SavedQuery[]) => {
    set(next);
    store(next);
  };
  const current = saved.find((one) => one.query === query);
  const save = () => {
    const name = prompt("Save this query as")?.trim();
    if (name) change(withSaved(saved, { name, query }));
  };
  return (
    <>
      <select
        class="sel"
        aria-label="Saved queries and examples"
        data-testid="saved-queries"
        value=""
        onChange={(e) => e.currentTarget.value && onPick(e.currentTarget.value)}
      >
        <option value="">Open a query</option>
        {saved.length > 0 && (
          <optgroup label="Saved in this browser">
            {saved.map((one) => (
              <option key={one.name} value={one.query}>
                {one.name}
              </option>
            ))}
          </optgroup>
        )}
        <optgroup label="Examples">
          {EXAMPLES.map(([name, text]) => (
            <option key={name} value={text}>
              {name}
            </option>
          ))}
        </optgroup>
      </select>
      {current ? (
        <button type="button" class="btn sm" onClick={() => change(saved.filter((one) => one !== current))}>
          Delete {current.name}
        </button>
      ) : (
        <button type="button" class="btn sm" disabled={!query.trim()} onClick={save} data-testid="save-query">
          Save
        </button>
      )}
    </>
  );
}
