import { useModel } from "../../model/page/hooks";
import { nbytes } from "../../model/text/format";
import { Panel } from "../basics";
import { MemoryRows } from "./memory-rows";

export function MemoryLegend() {
  const { isLive } = useModel();
  return (
    <ul class="keylist">
      {[
        ["--mem-managed", "managed"],
        ["--mem-unmanaged", "unmanaged"],
        ["--mem-spilled", "spilled"],
      ].map(([colour, text]) => (
        <li key={text}>
          <i class="sw" style={{ background: `var(${colour})` }} />
          {text}
        </li>
      ))}
      {/* Of a run that goes on, only the samples are known. */}
      {!isLive && (
        <li>
          <i class="sw" style="background:var(--text-2);height:2px" />
          peak, at a time between samples
        </li>
      )}
    </ul>
  );
}

export function limitNote(limits: readonly number[]): string {
  const known = [...new Set(limits.filter((l) => l > 0))];
  return known.length === 0
    ? "no limit"
    : known.length === 1
      ? `limit ${nbytes(known[0])} each`
      : `limits up to ${nbytes(Math.max(...known))}`;
}

export function MemoryPanel(props: { class?: string }) {
  const { report, nav } = useModel();
  return (
    <Panel
      title="Memory by worker"
      note={limitNote(report.workers.map((w) => w.memory_limit))}
      class={`fcol ${props.class ?? ""}`}
      foot={
        <>
          <MemoryLegend />
          <a
            class="push"
            href={nav.href("memory")}
            onClick={(e) => {
              e.preventDefault();
              nav.go("memory");
            }}
          >
            Open memory
          </a>
        </>
      }
    >
      <MemoryRows max={12} />
    </Panel>
  );
}
