import { useMemo } from "preact/hooks";
import type { Event } from "../api/schema.gen";
import { useModel, useParam, useSettledSelection } from "../model/page/hooks";
import { eventText, rawDetail } from "../model/text/event-text";
import { clock, count, moment } from "../model/text/format";
import { select } from "../model/time";
import { Panel, SectionHead } from "../widgets/basics";
import { Pick } from "../widgets/controls/inputs";
import { DataTable } from "../widgets/table/table";

const BAD = /error|critical|fail|kill|lost/i;
const WARN = /warn/i;

export function Events() {
  const model = useModel();
  const { report, nav, axis } = model;
  const selection = useSettledSelection();
  const [source, setSource] = useParam("source");
  const [kind, setKind] = useParam("kind");
  const [worker, setWorker] = useParam("worker");
  const sentence = (e: Event) => eventText(e, e.worker ? model.worker(e.worker) : "");
  const distinct = (values: string[]) =>
    [...new Set(values)]
      .filter(Boolean)
      .sort()
      .map((v) => [v, v] as const);
  const rows = useMemo(
    () =>
      report.events.filter((e) => {
        const t = model.since(e.time_us);
        return (
          (selection.whole || (t >= selection.t0 && t < selection.t1)) &&
          (!source || e.source === source) &&
          (!kind || e.kind === kind) &&
          (!worker || e.worker === worker)
        );
      }),
    [selection, source, kind, worker],
  );
  return (
    <>
      <SectionHead
        title="Events and logs"
        note={
          report.events.length < report.events_of
            ? `${count(report.events.length)} of ${count(report.events_of)} in this report`
            : `${count(report.events_of)} recorded`
        }
      />
      <Panel>
        <div class="filters">
          <Pick
            label="Source"
            all="all sources"
            options={distinct(report.events.map((e) => e.source))}
            value={source}
            onChange={setSource}
          />
          <Pick
            label="Kind"
            all="all kinds"
            options={distinct(report.events.map((e) => e.kind))}
            value={kind}
            onChange={setKind}
          />
          <Pick
            label="Worker"
            all="all workers"
            options={[...new Set(report.events.map((e) => e.worker))]
              .filter(Boolean)
              .map((w) => [w, model.worker(w)] as const)}
            value={worker}
            onChange={setWorker}
          />
          {(source || kind || worker) && (
            <button
              type="button"
              class="btn sm"
              onClick={() => nav.set({ source: undefined, kind: undefined, worker: undefined })}
            >
              Clear filters
            </button>
          )}
        </div>
        <DataTable
          title="Events"
          label="Events and log lines"
          name="events"
          rows={rows}
          of={report.events_of}
          rowKey={(e) => `${e.time_us} ${e.source} ${e.kind} ${e.worker} ${e.text}`}
          rowTestid="event-row"
          compact
          sort={{ id: "time", down: false }}
          empty="No events match the selected time and filters"
          columns={[
            {
              id: "time",
              head: "Time",
              value: (e) => e.time_us,
              cell: (e) => (
                <button
                  type="button"
                  class="link"
                  title={moment(e.time_us)}
                  onClick={() =>
                    nav.select(
                      select(axis, model.since(e.time_us) - 8 * axis.width, model.since(e.time_us) + 8 * axis.width),
                    )
                  }
                >
                  {clock(model.since(e.time_us))}
                </button>
              ),
            },
            {
              id: "text",
              head: "Event",
              // Filters and exports include the recorded detail.
              value: (e) => (e.text.startsWith("{") ? `${sentence(e)}: ${e.text}` : sentence(e)),
              cell: (e) => <EventCell sentence={sentence(e)} raw={rawDetail(e.text)} />,
            },
            { id: "source", head: "Source", value: (e) => e.source },
            {
              id: "kind",
              head: "Kind",
              value: (e) => e.kind,
              cell: (e) => (
                <span class={BAD.test(e.kind) ? "bad" : ""} style={WARN.test(e.kind) ? "color:var(--st-warn)" : ""}>
                  {e.kind}
                </span>
              ),
            },
            { id: "worker", head: "Worker", value: (e) => (e.worker ? model.worker(e.worker) : "") },
            { id: "repeats", head: "Count", num: true, value: (e) => e.repeats, text: count },
          ]}
        />
      </Panel>
    </>
  );
}

/** An event as a sentence, with the recorded detail behind a disclosure. */
function EventCell({ sentence, raw }: { sentence: string; raw: string }) {
  if (!raw) return <span title={sentence}>{sentence}</span>;
  return (
    <details class="eventcell">
      <summary title={sentence}>{sentence}</summary>
      <pre>{raw}</pre>
    </details>
  );
}
