import type { ComponentChildren } from "preact";
import { useModel } from "../model/page/hooks";
import type { Piece, ViewAnswer } from "./answers";

/** The first line of a view. Until its numbers are loaded it is empty, but as high: the panels below do not move. */
export function AnswerLine({ answer, children }: { answer: ViewAnswer | null; children?: ComponentChildren }) {
  if (!answer) return <p class="answer line">&nbsp;</p>;
  return (
    <p class="answer line" data-testid="view-answer">
      <b>{answer.fact.map(piece)}</b> <span>{answer.context.map(piece)}</span>
      {children}
    </p>
  );
}

function piece(p: Piece) {
  if (typeof p === "string") return p;
  if ("code" in p) return <code>{p.code}</code>;
  return <data data-quantity={p.quantity}>{p.value}</data>;
}

/** A link to the workers, if one was lost. */
export function ShowWorkers() {
  const { report, nav } = useModel();
  // Of a run that goes on, the number is not known.
  if (!(report.totals.workers_lost > 0)) return null;
  return (
    <>
      {" "}
      <button type="button" class="link" onClick={() => nav.go("workers")}>
        Show workers
      </button>
    </>
  );
}
