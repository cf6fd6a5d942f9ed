interface FieldProps {
  label: string;
  name: string;
  secret?: boolean;
  autocomplete?: string;
  hint?: string;
  minLength?: number;
  pattern?: string;
  value?: string;
  autoFocus?: boolean;
  /** Whether the field can stay empty. */
  optional?: boolean;
}

/** A labelled text input. */
export function Field({
  label,
  name,
  secret,
  autocomplete = "off",
  hint,
  minLength,
  pattern,
  value,
  autoFocus,
  optional,
}: FieldProps) {
  const attributes = {
    class: "txt",
    name,
    autocomplete,
    required: !optional,
    minLength,
    pattern,
    defaultValue: value,
    autoFocus,
    spellcheck: false,
    autocapitalize: "none",
  } as const;
  return (
    <label class="field">
      {label}
      {secret ? <input type="password" {...attributes} /> : <input type="text" {...attributes} />}
      {hint && <small class="faint">{hint}</small>}
    </label>
  );
}

/** Return the values of a submitted form by name, including the button that submitted it. */
export function fieldsOf(event: SubmitEvent): Record<string, string> {
  const fields: Record<string, string> = {};
  new FormData(event.currentTarget as HTMLFormElement, event.submitter).forEach((value, name) => {
    fields[name] = String(value);
  });
  return fields;
}
