import type { HostedReport } from "../api/server.gen";
import { EditDialog, parseTags } from "./edit-dialog";
import { Field } from "./field";

const EXPIRY = [
  ["", "unchanged"],
  ["7", "in 7 days"],
  ["30", "in 30 days"],
  ["365", "in a year"],
  ["0", "never"],
] as const;

export function EditReport({
  report: r,
  change,
}: {
  report: HostedReport;
  change: (body: object) => Promise<unknown>;
}) {
  const save = ({ title, tags, lasts, link }: Record<string, string>) =>
    change({
      title,
      tags: parseTags(tags ?? ""),
      ...(lasts ? { days_to_expire: Number(lasts) } : {}),
      ...(link ? { new_link: true } : {}),
    });
  return (
    <EditDialog
      title={`Report ${r.id}`}
      button="Edit"
      label={`Edit ${r.title || r.filename}`}
      save={save}
      testid="edit-report"
    >
      <Field label="Title" name="title" value={r.title} optional />
      <Field label="Tags" name="tags" value={r.tags.join(", ")} hint="Separate tags with commas" optional />
      <label class="field">
        Expires{" "}
        <select class="sel" name="lasts">
          {EXPIRY.map(([days, words]) => (
            <option key={days} value={days}>
              {words}
            </option>
          ))}
        </select>
      </label>
      {!r.private && (
        <label class="check">
          <input type="checkbox" name="link" value="new" /> Create a new link; the old one stops working
        </label>
      )}
    </EditDialog>
  );
}
