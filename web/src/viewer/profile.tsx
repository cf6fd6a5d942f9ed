import { useState } from "preact/hooks";
import { type LineTime, shortFile } from "../model/flame";
import { useModel, useParam, useSettledSelection } from "../model/page/hooks";
import { quantityOf } from "../model/quantity";
import { counted, percent } from "../model/text/format";
import { wholeRun } from "../model/time";
import { Loading, Panel, ViewHead } from "../widgets/basics";
import { Pick, Search, Seg } from "../widgets/controls/inputs";
import { FlameGraph, flameAmount } from "../widgets/flame/flame-graph";
import { CODE_OWNERS, FlameLegend, LineBar, useFlame } from "../widgets/flame/flame-panel";
import { TimeRuler } from "../widgets/stream/time-ruler";
import { DataTable } from "../widgets/table/table";
import { AnswerLine } from "./answer-line";
import { profileAnswer } from "./answers";
import { Code } from "./code";

export function Profile() {
  const model = useModel();
  const { flame: data } = model.report;
  const kinds = data.cube.keys.kind ?? [];
  const [kind, setKind] = useParam("kind", kinds.includes("compute") ? "compute" : "");
  const [prefix, setPrefix] = useParam("prefix");
  const [span, setSpan] = useParam("span");
  const [worker, setWorker] = useParam("worker");
  const [search, setSearch] = useParam("q");
  const [direction, setDirection] = useParam("dir", "down");
  const [owner, setOwner] = useState("");
  const flame = useFlame({ kind, prefix, span, worker }, direction === "up");
  const whole = useFlame({ kind: "compute", prefix: "", span: "", worker: "" }, false, wholeRun(model.axis));
  const isWhole = useSettledSelection().whole && kind === "compute" && !prefix && !span && !worker;
  const spanName = new Map(model.report.spans.map((s) => [s.span, s.name]));
  const names = (key: string) => (data.cube.keys[key] ?? []).filter((v) => v !== "");
  const filtered = Boolean(prefix || span || worker);
  const quality = data.expected > 0 ? data.got / data.expected : 1;
  return (
    <>
      <ViewHead title="Profile" />
      <AnswerLine answer={whole && profileAnswer(whole.lines, whole.top.total, shortFile, 1 - quality)} />
      <TimeRuler />
      <Panel class="mt">
        <div class="filters">
          <Seg
            label="Stacks"
            options={kinds.map((k) => [k, k || "unnamed"] as const)}
            value={kind}
            onChange={setKind}
          />
          <Pick
            label="Prefix"
            all="all prefixes"
            options={names("prefix").map((p) => [p, p])}
            value={prefix}
            onChange={setPrefix}
            testid="flame-prefix"
          />
          {names("span").length > 0 && (
            <Pick
              label="Span"
              all="all spans"
              options={names("span").map((s) => [s, spanName.get(s) ?? s])}
              value={span}
              onChange={setSpan}
            />
          )}
          <Pick
            label="Worker"
            all="all workers"
            options={names("worker").map((w) => [w, model.worker(w)])}
            value={worker}
            onChange={setWorker}
          />
          <span class="right">
            <Search label="Find function" value={search} onInput={setSearch} testid="flame-search" />
            <Seg
              label="Direction"
              options={[
                ["down", "Top down"],
                ["up", "Bottom up"],
              ]}
              value={direction}
              onChange={setDirection}
            />
          </span>
        </div>
        {!flame ? (
          <Loading />
        ) : flame.samples === 0 ? (
          <p class="callout">
            No samples in this selection.{" "}
            {filtered && (
              <button
                type="button"
                class="link"
                onClick={() => model.nav.set({ span: undefined, worker: undefined, prefix: undefined })}
              >
                Clear filters
              </button>
            )}
          </p>
        ) : (
          <>
            <p class="callout" style="border:0">
              {flame.unit === "seconds" && `${flameAmount(flame.top.total, flame.unit)} in `}
              {counted(flame.samples, "sample")}
            </p>
            <FlameGraph top={flame.top} search={search} unit={flame.unit} />
          </>
        )}
        <div class="pfoot">
          <FlameLegend />
          {data.note && <span>{data.note}</span>}
        </div>
      </Panel>
      {flame && flame.samples > 0 && (
        <section class="panel mt" aria-label="Hottest lines (self time)">
          <DataTable
            title="Hottest lines (self time)"
            label="Lines by self time"
            name="lines"
            rows={owner ? flame.lines.filter((l) => l.whose === owner) : flame.lines}
            note="lines"
            sort={{ id: "self", down: true }}
            rowKey={(l: LineTime) => `${l.file}:${l.line}:${l.name}`}
            compact
            tools={<Pick label="Code" all="all code" options={CODE_OWNERS} value={owner} onChange={setOwner} />}
            columns={[
              {
                id: "function",
                head: "Function",
                value: (l) => l.name,
                cell: (l) => <span class="mono">{l.name}</span>,
              },
              {
                id: "line",
                head: "Line",
                value: (l) => `${l.file}:${l.line}`,
                cell: (l) => (
                  <span class="mono faint" title={`${l.file}:${l.line}`}>
                    {shortFile(l.file)}:{l.line}
                  </span>
                ),
              },
              { id: "whose", head: "Code", value: (l) => CODE_OWNERS.find(([k]) => k === l.whose)?.[1] ?? l.whose },
              {
                id: "self",
                head: "Self time",
                num: true,
                value: (l) => l.self,
                text: (self) => flameAmount(self, flame.unit),
              },
              {
                id: "share",
                head: "Share",
                num: true,
                value: (l) => l.self / flame.top.total,
                text: percent,
                quantity: (l) => (isWhole ? quantityOf("line-share", l.file, l.line, l.name) : undefined),
              },
              {
                id: "bar",
                head: "",
                value: (l) => l.self,
                width: "24%",
                cell: (l) => <LineBar line={l} max={flame.lines[0]?.self ?? 0} />,
              },
            ]}
          />
        </section>
      )}
      <Code />
    </>
  );
}
