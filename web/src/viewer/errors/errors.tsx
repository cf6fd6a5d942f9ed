import { useModel, useNav, useSettledSelection } from "../../model/page/hooks";
import { quantityOf } from "../../model/quantity";
import { clock, count } from "../../model/text/format";
import { ViewHead } from "../../widgets/basics";
import { TimeRuler } from "../../widgets/stream/time-ruler";
import { DataTable } from "../../widgets/table/table";
import { AnswerLine, ShowWorkers } from "../answer-line";
import { failuresAnswer } from "../answers";
import { ErrorDetail } from "./error-detail";
import { LostWorkers } from "./lost-workers";

export function Errors() {
  const model = useModel();
  const { params } = useNav();
  const selection = useSettledSelection();
  const { report, nav } = model;
  const answer = failuresAnswer(report.errors, report.totals, report.workers, (address) => model.called(address));
  if (report.errors.length === 0) {
    return (
      <>
        <ViewHead title="Failures" />
        <AnswerLine answer={answer}>
          <ShowWorkers />
        </AnswerLine>
        <LostWorkers />
      </>
    );
  }
  const at = Math.min(Number(params.item) || 0, report.errors.length - 1);
  const chosen = report.errors[at];
  const selected = selection.whole
    ? report.errors
    : report.errors.filter((e) => model.since(e.first_us) < selection.t1 && model.since(e.last_us) >= selection.t0);
  return (
    <>
      <ViewHead title="Failures" />
      <AnswerLine answer={answer}>
        <ShowWorkers />
      </AnswerLine>
      <TimeRuler />
      <section class="panel mt" aria-label="Error groups">
        <DataTable
          title="Error groups"
          label="Error groups"
          name="errors"
          rows={selected}
          of={report.errors.length}
          note={selection.whole ? "error groups" : "error groups in the selected time; counts are for the whole run"}
          empty="No errors in the selected time"
          rowKey={(e) => e.fingerprint}
          rowTestid="error-row"
          selected={(e) => e === chosen}
          onRow={(e) => nav.set({ item: String(report.errors.indexOf(e)) })}
          sort={{ id: "count", down: true }}
          columns={[
            {
              id: "type",
              head: "Type",
              value: (e) => e.type,
              cell: (e) => (
                <b class="mono cut" style="max-width:26ch" title={e.type}>
                  {e.type}
                </b>
              ),
            },
            {
              id: "message",
              head: "Message",
              value: (e) => e.message,
              cell: (e) => (
                <span class="cut" style="max-width:40ch" title={e.message}>
                  {e.message}
                </span>
              ),
            },
            {
              id: "prefixes",
              head: "Prefix",
              value: (e) => e.prefixes.join(", "),
              cell: (e) => (
                <span class="mono cut" style="max-width:26ch" title={e.prefixes.join(", ")}>
                  {e.prefixes.join(", ")}
                </span>
              ),
            },
            {
              id: "count",
              head: "Occurrences",
              num: true,
              value: (e) => e.count,
              text: count,
              quantity: (e) => quantityOf("occurrences", e.fingerprint),
            },
            { id: "retried", head: "Retried", num: true, value: (e) => e.retried, text: count },
            {
              id: "first",
              head: "First seen",
              num: true,
              value: (e) => e.first_us,
              cell: (e) => clock(model.since(e.first_us)),
            },
            {
              id: "last",
              head: "Last seen",
              num: true,
              value: (e) => e.last_us,
              cell: (e) => clock(model.since(e.last_us)),
            },
          ]}
        />
      </section>
      <ErrorDetail error={chosen} />
      <LostWorkers />
    </>
  );
}
