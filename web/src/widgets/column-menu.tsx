import { Icon } from "./icon";
import { Popover } from "./popover";

/** A menu of the columns to show. */
export function ColumnMenu({
  columns,
  hidden,
  onChange,
}: {
  columns: readonly { id: string; head: string }[];
  hidden: ReadonlySet<string>;
  onChange: (next: ReadonlySet<string>) => void;
}) {
  const toggle = (id: string) => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    onChange(next);
  };
  return (
    <Popover
      button={
        <>
          <Icon name="cols" />
          Columns
        </>
      }
    >
      {columns.map((c) => (
        <label key={c.id}>
          <input type="checkbox" checked={!hidden.has(c.id)} onChange={() => toggle(c.id)} />
          {c.head || c.id}
        </label>
      ))}
    </Popover>
  );
}
