interface SegProps<T extends string> {
  label: string;
  options: readonly (readonly [T, string])[];
  value: T;
  onChange: (value: T) => void;
  testid?: string;
}

/** A choice between a few options, all visible. */
export function Seg<T extends string>({ label, options, value, onChange, testid }: SegProps<T>) {
  return (
    <div class="seg" role="group" aria-label={label} data-testid={testid}>
      {options.map(([key, text]) => (
        <button type="button" key={key} aria-pressed={key === value} onClick={() => onChange(key)}>
          {text}
        </button>
      ))}
    </div>
  );
}

interface PickProps {
  label: string;
  options: readonly (readonly [string, string])[];
  value: string;
  all?: string;
  onChange: (value: string) => void;
  testid?: string;
}

/** A choice between many options. */
export function Pick({ label, options, value, all, onChange, testid }: PickProps) {
  return (
    <label class="lab">
      {label}
      <select class="sel" value={value} data-testid={testid} onChange={(e) => onChange(e.currentTarget.value)}>
        {all && <option value="">{all}</option>}
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text.length > 60 ? `${text.slice(0, 59)}…` : text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Search({
  label,
  value,
  onInput,
  testid,
}: {
  label: string;
  value: string;
  onInput: (text: string) => void;
  testid: string;
}) {
  return (
    <input
      class="txt"
      type="search"
      placeholder={label}
      aria-label={label}
      value={value}
      data-testid={testid}
      onInput={(e) => onInput(e.currentTarget.value)}
    />
  );
}
