import { count } from "./model/format";
import { useModel, useView } from "./model/hooks";
import type { View } from "./model/nav";
import { Icon } from "./widgets/icon";
import { viewGroups } from "./widgets/views";

export function Rail() {
  const model = useModel();
  const view = useView();
  const { report } = model;
  const counts: Partial<Record<View, number>> = {
    workers: report.workers.length,
    errors: report.errors.length,
    groups: report.groups.length,
    events: report.events_of,
    code: report.computations.length,
  };
  return (
    <nav class="rail" aria-label="Views">
      <div class="inner">
        {viewGroups(report).map(([title, views]) => (
          <RailGroup key={title} title={title}>
            {views.map(({ view: v, name, icon }) => (
              <a
                key={v}
                href={model.nav.href(v)}
                aria-current={v === view ? "page" : undefined}
                data-testid={`nav-${v}`}
                onClick={(e) => {
                  if (e.ctrlKey || e.metaKey || e.shiftKey) return;
                  e.preventDefault();
                  model.nav.go(v);
                }}
              >
                <Icon name={icon} />
                {name}
                {counts[v] ? <span class={v === "errors" ? "n bad" : "n"}>{count(counts[v])}</span> : null}
              </a>
            ))}
          </RailGroup>
        ))}
        <div class="foot">{report.statement}</div>
      </div>
    </nav>
  );
}

function RailGroup({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return (
    <>
      <h2>{title}</h2>
      {children}
    </>
  );
}
