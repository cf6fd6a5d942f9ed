import { useMemo, useState } from "preact/hooks";
import type { CurrentStacks, TaskStack } from "../../api/server.gen";
import { byLine, shortFile, topDown } from "../../model/flame";
import { counted } from "../../model/text/format";
import { Search } from "../../widgets/controls/inputs";
import { FlameGraph } from "../../widgets/flame/flame-graph";
import { FlameLegend } from "../../widgets/flame/flame-panel";
import { CardTable } from "../../widgets/table/card-table";
import { ScrollRegion } from "../parts/scroll-region";
import { Ago, seconds } from "../parts/time-text";

/** Lines listed below the flame graph. */
const MAX_LINES = 10;

/** The stack of one task, innermost frame first. */
export function OneStack({ answer, item }: { answer: CurrentStacks; item: TaskStack }) {
  const frames = item.frames.map((frame) => answer.frames[frame]).reverse();
  return (
    <>
      <p>
        <b class="mono">{item.key}</b> on {item.worker_name || item.worker}
        {item.age !== null && `, running for ${seconds(item.age)}`}, taken <Ago at={item.time} now="just now" />
      </p>
      <ScrollRegion label="Stack">
        <ol class="stack-frames" data-testid="stack-frames">
          {frames.map(([file, name, line, whose], i) => (
            <li key={i} class={whose === "user" ? "user" : ""}>
              <i class={`sw f-${whose}`} />
              <span class="mono">{name}</span>{" "}
              <span class="mono faint" title={`${file}:${line}`}>
                {shortFile(file)}:{line}
              </span>
            </li>
          ))}
        </ol>
      </ScrollRegion>
      <FlameLegend />
    </>
  );
}

/** All stacks merged into one flame graph, with the lines that tasks are at. */
export function AllStacks({ answer }: { answer: CurrentStacks }) {
  const [search, setSearch] = useState("");
  const { top, lines } = useMemo(() => {
    const stacks = {
      frames: answer.frames,
      nodes: Uint32Array.from(answer.nodes),
      parents: Uint32Array.from(answer.parents),
    };
    const self = Float64Array.from(answer.counts);
    return { top: topDown(stacks, self, "all running tasks"), lines: byLine(stacks, self).slice(0, MAX_LINES) };
  }, [answer]);
  return (
    <>
      <p>
        Stacks of {counted(answer.items.length, "task")} on {counted(answer.answered, "worker")}, taken{" "}
        <Ago at={answer.items[0]?.time ?? answer.asked_at} now="just now" />
      </p>
      <Search label="Find function" value={search} onInput={setSearch} testid="stack-search" />
      <FlameGraph top={top} search={search} perSample={0} />
      <ScrollRegion label="Current lines">
        <CardTable class="compact">
          <thead>
            <tr>
              <th>Function</th>
              <th>Line</th>
              <th class="num">Tasks</th>
            </tr>
          </thead>
          <tbody>
            {lines.map((l) => (
              <tr key={`${l.file}:${l.line}:${l.name}`} data-testid="stack-line">
                <td class="mono">{l.name}</td>
                <td class="mono faint" title={`${l.file}:${l.line}`}>
                  {shortFile(l.file)}:{l.line}
                </td>
                <td class="num">{l.self}</td>
              </tr>
            ))}
          </tbody>
        </CardTable>
      </ScrollRegion>
      <FlameLegend />
    </>
  );
}
