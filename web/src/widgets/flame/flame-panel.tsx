import { useMemo, useState } from "preact/hooks";
import { type BinRange, sumBy, total, type Where } from "../../model/cube";
import { bottomUp, byLine, type FlameNode, type LineTime, type Stacks, shortFile, topDown } from "../../model/flame";
import { useAsync, useCube, useModel, useSettledSelection } from "../../model/page/hooks";
import { quantityOf } from "../../model/quantity";
import { counted, percent } from "../../model/text/format";
import { Loading, Panel } from "../basics";
import { Search, Seg } from "../controls/inputs";
import { FlameGraph, type FlameUnit, flameAmount } from "./flame-graph";

export const CODE_OWNERS = [
  ["user", "your code"],
  ["lib", "libraries"],
  ["native", "native"],
  ["dask", "Dask and Python"],
] as const;

export function FlameLegend() {
  return (
    <ul class="keylist">
      {CODE_OWNERS.map(([key, text]) => (
        <li key={key}>
          <i class={`sw edged f-${key}`} />
          {text}
        </li>
      ))}
    </ul>
  );
}

/** The self time of a line as a bar, in the colour that its code has in the flame graph. */
export function LineBar({ line, max }: { line: LineTime; max: number }) {
  return (
    <div class="ibar" style={{ width: `${(line.self / (max || 1)) * 100}%` }}>
      <i class={`edged f-${line.whose}`} style="flex:1" />
    </div>
  );
}

/** A small profile of the selected time. */
export function FlamePanel(props: { class?: string }) {
  const model = useModel();
  const { report, nav } = model;
  const [inverted, setInverted] = useState<"down" | "up">("down");
  const [search, setSearch] = useState("");
  const kind = report.flame.cube.keys.kind?.includes("compute") ? "compute" : "";
  const flame = useFlame({ kind, prefix: "", span: "", worker: "" }, inverted === "up");
  const isWhole = useSettledSelection().whole;
  const { got, expected } = report.flame;
  const note =
    flame && model.isLive
      ? counted(flame.samples, "sample")
      : flame && got > 0
        ? `${flameAmount(flame.top.total, flame.unit)}${got < 0.99 * expected ? `, ${percent(1 - got / expected)} of samples missed` : " sampled"}`
        : "";
  const lines = flame?.lines.slice(0, 3) ?? [];
  const max = lines[0]?.self ?? 1;
  return (
    <Panel
      title="Profile"
      note={note}
      class={`fcol ${props.class ?? ""}`}
      right={
        <>
          <span class="hide-n">
            <Search label="Find function" value={search} onInput={setSearch} testid="flame-search" />
          </span>
          <Seg
            label="Direction"
            options={[
              ["down", "Top down"],
              ["up", "Bottom up"],
            ]}
            value={inverted}
            onChange={setInverted}
          />
        </>
      }
      foot={
        <>
          <FlameLegend />
          <a
            class="push"
            href={nav.href("profile")}
            onClick={(e) => {
              e.preventDefault();
              nav.go("profile");
            }}
          >
            Open profile
          </a>
        </>
      }
    >
      {!flame ? (
        <Loading />
      ) : flame.samples === 0 ? (
        <p class="callout">
          {got > 0 ? "No samples in the selected time." : model.isLive ? "No samples yet." : "No samples recorded."}
        </p>
      ) : (
        <>
          <FlameGraph top={flame.top} search={search} unit={flame.unit} maxRows={10} />
          <table class="selft">
            <thead>
              <tr>
                <th>Hottest lines</th>
                <th>Line</th>
                <th class="num">Self time</th>
                <th style="width:26%">
                  <span class="sr">Bar</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {lines.map((l) => (
                <tr key={`${l.file}${l.line}${l.name}`}>
                  <td class="mono">
                    <span class="cut" style="max-width:28ch" title={l.name}>
                      {l.name}
                    </span>
                  </td>
                  <td class="mono faint">
                    <span class="fileline" title={`${l.file}:${l.line}`}>
                      <span class="cut">{shortFile(l.file)}</span>:{l.line}
                    </span>
                  </td>
                  <td
                    class="num"
                    data-quantity={isWhole && kind ? quantityOf("line-share", l.file, l.line, l.name) : undefined}
                  >
                    {percent(l.self / flame.top.total)}
                  </td>
                  <td>
                    <LineBar line={l} max={max} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </Panel>
  );
}

interface FlameFilter {
  kind: string;
  prefix: string;
  span: string;
  worker: string;
}

interface FlameResult {
  top: FlameNode;
  lines: LineTime[];
  unit: FlameUnit;
  samples: number;
  stacks: Stacks;
}

/** Return the flame graph of a range, or else of the selected time, with filters; null while loading. */
export function useFlame(filter: FlameFilter, inverted: boolean, range?: BinRange): FlameResult | null {
  const model = useModel();
  const settled = useSettledSelection();
  const selection = range ?? settled;
  const cube = useCube("flame");
  const { flame } = model.report;
  const columns = useAsync(
    () => Promise.all([model.columns.numbers(flame.nodes), model.columns.numbers(flame.parents)]),
    [model],
  ).value;
  return useMemo(() => {
    if (!cube || !columns) return null;
    const [nodes, parents] = columns;
    const where: Where = {};
    for (const key of ["kind", "prefix", "span", "worker"] as const) {
      if (filter[key] !== "") where[key] = cube.keys[key]?.indexOf(filter[key]) ?? -1;
    }
    const byCode = filter.kind === "compute" ? flame.seconds_per_sample : [];
    const weights = byCode.length > 0 ? { key: "prefix", byCode } : undefined;
    const self = sumBy(cube, "stack", "count", selection, where, nodes.length, weights);
    const stacks = { frames: flame.frames, nodes, parents };
    const name = filter.kind ? `all ${filter.kind}` : "all samples";
    const top = inverted ? bottomUp(stacks, self, name) : topDown(stacks, self, name);
    const samples = total(cube, "count", selection, where);
    return { top, lines: byLine(stacks, self), unit: weights ? "seconds" : "samples", samples, stacks };
  }, [cube, columns, selection.b0, selection.b1, filter.kind, filter.prefix, filter.span, filter.worker, inverted]);
}
