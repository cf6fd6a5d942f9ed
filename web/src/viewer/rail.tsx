import { useEffect, useRef } from "preact/hooks";
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
        // Tasks and not error groups, as everywhere else.
        errors: report.errors.reduce((sum, e) => sum + e.count - (e.retried || 0), 0),
      }
    : {};
  const rail = useRef<HTMLElement>(null);
  useEffect(() => {
    const current = rail.current?.querySelector<HTMLElement>("[aria-current]");
    // On narrow screens, the rail is a row that scrolls.
    if (current) rail.current?.scrollTo(current.offsetLeft - (innerWidth - current.offsetWidth) / 2, 0);
  }, [view]);
  return (
    <nav class="rail" aria-label="Views" ref={rail}>
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
