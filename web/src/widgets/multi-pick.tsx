import { count } from "../model/format";
import { Icon } from "./icon";
import { Popover } from "./popover";

interface Props {
  label: string;
  /** The plural of what is chosen, as in "all prefixes" and "3 prefixes". */
  noun: string;
  options: readonly string[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
  testid?: string;
}

/** A choice of several options; none means all. */
export function MultiPick({ label, noun, options, chosen, onChange, testid }: Props) {
  const text =
    chosen.length === 0 ? `all ${noun}` : chosen.length === 1 ? chosen[0] : `${count(chosen.length)} ${noun}`;
  const toggle = (option: string) =>
    onChange(chosen.includes(option) ? chosen.filter((c) => c !== option) : [...chosen, option]);
  return (
    <div class="lab">
      {label}
      <Popover
        class="multi"
        testid={testid}
        label={`${label}: ${text}`}
        button={
          <>
            <span class="cut">{text}</span>
            <Icon name="chev" />
          </>
        }
      >
        <fieldset aria-label={label}>
          {options.map((option) => (
            <label key={option} title={option}>
              <input type="checkbox" checked={chosen.includes(option)} onChange={() => toggle(option)} />
              <span class="cut">{option}</span>
            </label>
          ))}
        </fieldset>
        {chosen.length > 0 && (
          <button type="button" class="link" onClick={() => onChange([])}>
            Show all {noun}
          </button>
        )}
      </Popover>
    </div>
  );
}
