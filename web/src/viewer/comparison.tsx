import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { CATEGORIES, type ComparedChange, type ComparedText, type Comparison } from "../api/schema.gen";
import { CATEGORY_LABELS, changeText, quantityText } from "../model/comparison";
import { differential } from "../model/flame";
import { count, duration, nbytes } from "../model/text/format";
import { Panel, Swatch, ViewHead } from "../widgets/basics";
import { Search } from "../widgets/controls/inputs";
import { FlameGraph } from "../widgets/flame/flame-graph";
import { Plot } from "../widgets/plots/plot";
import { CardTable } from "../widgets/table/card-table";
import { ChangeVerdict, ComparedPrefixes } from "../widgets/table/compared-prefixes";

/** A comparison as a page of its own. */
export function ComparisonPage({ comparison }: { comparison: Comparison }) {
  return (
    <main class="wide headroom" data-testid="page-compare">
      <ComparisonView comparison={comparison} />
    </main>
  );
}

/** Everything about a comparison. `before` and `after` replace the names of the runs, for example by links. */
export function ComparisonView({
  comparison: c,
  before,
  after,
}: {
  comparison: Comparison;
  before?: ComponentChildren;
  after?: ComponentChildren;
}) {
  return (
    <>
      <ViewHead title="Comparison" />
      <Panel testid="comparison-headline">
        <p class="callout" data-testid="headline">
          <b>{c.headline}</b>
        </p>
        {c.notes.map((note) => (
          <p class="callout" key={note}>
            {note}
          </p>
        ))}
        <p class="callout">
          <b>Before:</b> {before ?? c.before.join(", ")}
        </p>
        <p class="callout">
          <b>After:</b> {after ?? c.after.join(", ")}
        </p>
      </Panel>
      <Panel title="Totals" class="mt">
        <Changes
          label="Quantity"
          rows={[
            ["Total time", c.wall, duration],
            ["Peak memory", c.peak_memory, nbytes],
            ["Transferred", c.transferred, nbytes],
            ["Worker threads", c.threads, count],
            ["Failed tasks", c.errors, count],
          ]}
          verdicts
        />
      </Panel>
      <ComparedPrefixes prefixes={c.prefixes} />
      <ChangedFlame comparison={c} />
      <Panel title="Thread time" class="mt">
        <Changes
          label="Category"
          rows={CATEGORIES.flatMap((name) => {
            const change = c.thread_us.find((t) => t.name === name);
            return change ? [[CATEGORY_LABELS[name], change, duration] as const] : [];
          })}
        />
      </Panel>
      {c.spans_us.length > 0 && (
        <Panel title="Compute time by span" class="mt">
          <Changes label="Span" rows={c.spans_us.map((s) => [s.name, s, duration] as const)} />
        </Panel>
      )}
      <ComparedMemory comparison={c} />
      <Texts title="Packages" rows={c.versions} />
      <Texts title="Configuration" rows={c.config} />
      {c.code && (
        <Panel title="Code" class="mt">
          <pre class="src" tabIndex={0}>
            {c.code}
          </pre>
        </Panel>
      )}
    </>
  );
}

type Row = readonly [label: string, change: ComparedChange, text: (value: number) => string];

function Changes({ label, rows, verdicts = false }: { label: string; rows: readonly Row[]; verdicts?: boolean }) {
  return (
    <CardTable class="compact">
      <thead>
        <tr>
          <th>{label}</th>
          <th class="num">Before</th>
          <th class="num">After</th>
          <th class="num">Change</th>
          {verdicts && <th>Verdict</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, change, text]) => (
          <tr key={name}>
            <td>{name}</td>
            <td class="num">{quantityText(change.before, text)}</td>
            <td class="num">{quantityText(change.after, text)}</td>
            <td class="num">{changeText(change)}</td>
            {verdicts && (
              <td>
                <ChangeVerdict verdict={change.verdict} />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </CardTable>
  );
}

function ChangedFlame({ comparison }: { comparison: Comparison }) {
  const { flame } = comparison;
  const [search, setSearch] = useState("");
  const top = useMemo(() => {
    const stacks = {
      frames: flame.frames,
      nodes: Uint32Array.from(flame.nodes),
      parents: Uint32Array.from(flame.parents),
    };
    return differential(stacks, Float64Array.from(flame.before), Float64Array.from(flame.after), "All tasks");
  }, [flame]);
  return (
    <Panel
      title="Differential flame graph"
      note="Compute time of a run, by function"
      class="mt"
      testid="differential"
      right={<Search label="Find function" value={search} onInput={setSearch} testid="differential-search" />}
      foot={
        <>
          <span>
            <Swatch colour="--df-less-2" /> less time
          </span>
          <span>
            <Swatch colour="--df-same" /> within 5 %
          </span>
          <span>
            <Swatch colour="--df-more-2" /> more time
          </span>
        </>
      }
    >
      {top.total > 0 ? (
        <FlameGraph top={top} search={search} perSample={1} />
      ) : (
        <p class="callout">No samples were recorded in these runs.</p>
      )}
    </Panel>
  );
}

function ComparedMemory({ comparison: c }: { comparison: Comparison }) {
  const points = Math.min(c.memory_before.length, c.memory_after.length);
  const known = (values: readonly number[]) => values.slice(0, points).map((v) => (v < 0 ? Number.NaN : v));
  const wall = c.wall.after ?? 0;
  if (points < 2) return null;
  return (
    <Panel title="Memory" note="Sum over all workers. All runs are drawn with the length of the later ones." class="mt">
      <Plot
        label="Memory before and after"
        x={Array.from({ length: points }, (_, i) => (wall * i) / (points - 1))}
        series={[
          { label: "before", values: known(c.memory_before), colour: "--text-3", dash: true },
          { label: "after", values: known(c.memory_after), colour: "--mem-managed" },
        ]}
        format={nbytes}
        binary
      />
    </Panel>
  );
}

function Texts({ title, rows }: { title: string; rows: readonly ComparedText[] }) {
  if (rows.length === 0) return null;
  return (
    <Panel title={title} class="mt">
      <CardTable class="compact">
        <thead>
          <tr>
            <th>Name</th>
            <th>Before</th>
            <th>After</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <td class="mono">{row.name}</td>
              <td class="mono">{row.before || "–"}</td>
              <td class="mono">{row.after || "–"}</td>
            </tr>
          ))}
        </tbody>
      </CardTable>
    </Panel>
  );
}
