import type { Report } from "../api/schema.gen";
import type { View } from "../model/page/nav";
import { count } from "../model/text/format";
import { Icon } from "../widgets/icon";
import { viewEntries } from "./views";

interface Props {
  /** Null before the document has arrived: then there are no counts. */
  report: Report | null;
  view: View;
  href: (view: View) => string;
  go: (view: View) => void;
}

/** The views of a run. */
export function Rail({ report, view, href, go }: Props) {
  const counts: Partial<Record<View, number>> = report
    ? {
        workers: report.workers.length,
        errors: report.errors.length,
      }
    : {};
  return (
    <nav class="rail" aria-label="Views">
      <div class="inner">
        <h2>This run</h2>
        {viewEntries(report).map(({ view: v, name, icon }) => (
          <a
            key={v}
            href={href(v)}
            aria-current={v === view ? "page" : undefined}
            data-testid={`nav-${v}`}
            onClick={(e) => {
              if (e.ctrlKey || e.metaKey || e.shiftKey) return;
              e.preventDefault();
              go(v);
            }}
          >
            <Icon name={icon} />
            {name}
            {counts[v] ? <span class={v === "errors" ? "n bad" : "n"}>{count(counts[v])}</span> : null}
          </a>
        ))}
        {report && <div class="foot">{report.statement}</div>}
      </div>
    </nav>
  );
}
