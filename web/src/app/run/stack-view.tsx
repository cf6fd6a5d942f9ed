import { useMemo, useState } from "preact/hooks";
import type { CurrentStacks, TaskStack } from "../../api/server.gen";
import { byLine, shortFile, topDown } from "../../model/flame";
import { counted } from "../../model/text/format";
import { Search } from "../../widgets/controls/inputs";
import { FlameGraph } from "../../widgets/flame/flame-graph";
import { FlameLegend } from "../../widgets/flame/flame-panel";
import { ShortTable } from "../../widgets/table/card-table";
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
      <div class="scroll" tabIndex={0} role="region" aria-label="Stack">
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
      </div>
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
      <FlameGraph top={top} search={search} unit="samples" />
      <ShortTable
        label="Current lines"
        class="compact"
        rows={lines}
        keyOf={(l) => `${l.file}:${l.line}:${l.name}`}
        testid="stack-line"
        columns={[
          ["Function", (l) => l.name, "mono"],
          [
            "Line",
            (l) => (
              <span class="faint" title={`${l.file}:${l.line}`}>
                {shortFile(l.file)}:{l.line}
              </span>
            ),
            "mono",
          ],
          ["Tasks", (l) => l.self, "num"],
        ]}
      />
      <FlameLegend />
    </>
  );
}
