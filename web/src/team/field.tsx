interface FieldProps {
  label: string;
  name: string;
  secret?: boolean;
  complete?: string;
  hint?: string;
  least?: number;
  pattern?: string;
  value?: string;
  first?: boolean;
  /** May be left empty. */
  optional?: boolean;
}

/** A labelled line to type into. */
export function Field({ label, name, secret, complete = "off", hint, least, pattern, value, first, optional }: FieldProps) {
  const attributes = { class: "txt", name, autocomplete: complete, required: !optional, minLength: least, pattern, defaultValue: value, autoFocus: first, spellcheck: false, autocapitalize: "none" } as const;
  return (
    <label class="field">
      {label}
      {secret ? <input type="password" {...attributes} /> : <input type="text" {...attributes} />}
      {hint && <small class="faint">{hint}</small>}
    </label>
  );
}

/** What a form was sent with, by name; also the button it was sent by. */
export function fieldsOf(event: SubmitEvent): Record<string, string> {
  const fields: Record<string, string> = {};
  new FormData(event.currentTarget as HTMLFormElement, event.submitter).forEach((value, name) => {
    fields[name] = String(value);
  });
  return fields;
}
