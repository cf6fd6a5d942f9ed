import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { CATEGORIES, type ComparedChange, type ComparedText, type Comparison } from "../../api/schema.gen";
import { CATEGORY_LABELS, changeText, quantityText } from "../../model/comparison";
import { differential } from "../../model/flame";
import { count, counted, duration, nbytes } from "../../model/text/format";
import { Panel, Swatch } from "../../widgets/basics";
import { Search } from "../../widgets/controls/inputs";
import { FlameGraph } from "../../widgets/flame/flame-graph";
import { Plot } from "../../widgets/plots/plot";
import { ShortTable } from "../../widgets/table/card-table";
import { ComparedPrefixes } from "./compared-prefixes";
import { DurationDots, ThreadChanges } from "./comparison-charts";

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
      <p class="answer" data-testid="headline">
        <b>{c.verdict}</b> <span>{c.reason}</span>
      </p>
      {c.notes.length > 0 && (
        <ul class="plain" data-testid="comparison-notes">
          {c.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      <DurationDots comparison={c} />
      <div class="folds mt">
        <details data-testid="compared-runs">
          <summary>
            The {count(c.before.length)} and {counted(c.after.length, "run")}
          </summary>
          <p class="callout">
            <b>Before:</b> {before ?? c.before.join(", ")}
          </p>
          <p class="callout">
            <b>After:</b> {after ?? c.after.join(", ")}
          </p>
        </details>
      </div>
      <div class="cols mt">
        <ThreadChanges comparison={c} />
        <OtherChanges comparison={c} />
      </div>
      <ChangedFlame comparison={c} />
      <ComparedPrefixes prefixes={c.prefixes} />
      <Panel title="Thread time" class="mt">
        <Changes
          label="Category"
          rows={CATEGORIES.flatMap((name) => {
            const change = c.thread_us.find((t) => t.name === name);
            return change ? [[CATEGORY_LABELS[name], change] as const] : [];
          })}
        />
      </Panel>
      {c.spans_us.length > 0 && (
        <Panel title="Compute time by span" class="mt">
          <Changes label="Span" rows={c.spans_us.map((s) => [s.name, s] as const)} />
        </Panel>
      )}
      <ComparedMemory comparison={c} />
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

/** Everything besides time: memory, transfers, threads, failures and package versions. */
function OtherChanges({ comparison: c }: { comparison: Comparison }) {
  const quantity = (name: string, { before, after }: ComparedChange, text: (value: number) => string) =>
    [name, quantityText(before, text), quantityText(after, text)] as const;
  const rows = [
    quantity("Peak memory", c.peak_memory, nbytes),
    quantity("Transferred", c.transferred, nbytes),
    quantity("Worker threads", c.threads, count),
    quantity("Failed tasks", c.errors, count),
    ...c.versions.map((row) => [row.name, row.before || "not installed", row.after || "not installed"] as const),
  ];
  return (
    <Panel title="What else changed" class="c4" testid="other-changes">
      <ShortTable
        class="compact"
        rows={rows}
        keyOf={([name]) => name}
        columns={[
          ["Quantity", ([name]) => name],
          ["Before", ([, before]) => before, "num"],
          ["After", ([, , after]) => after, "num"],
        ]}
      />
    </Panel>
  );
}

/** Durations before and after. */
function Changes({ label, rows }: { label: string; rows: readonly (readonly [string, ComparedChange])[] }) {
  return (
    <ShortTable
      class="compact"
      rows={rows}
      keyOf={([name]) => name}
      columns={[
        [label, ([name]) => name],
        ["Before", ([, change]) => quantityText(change.before, duration), "num"],
        ["After", ([, change]) => quantityText(change.after, duration), "num"],
        ["Change", ([, change]) => changeText(change), "num"],
      ]}
    />
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
      note="Compute time of a median run, by function"
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
        <FlameGraph top={top} search={search} unit="seconds" />
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
      <ShortTable
        class="compact"
        rows={rows}
        keyOf={(row) => row.name}
        columns={[
          ["Name", (row) => row.name, "mono"],
          ["Before", (row) => row.before || "–", "mono"],
          ["After", (row) => row.after || "–", "mono"],
        ]}
      />
    </Panel>
  );
}
