import { useMemo } from "preact/hooks";
import type { Usage } from "../api/server.gen";
import { dollars, durationOrDash } from "../model/format";
import { type UsageBars, usageBars } from "../model/usage";
import { BarRows } from "../widgets/bar-rows";
import { Panel } from "../widgets/basics";
import { UsageDays } from "./usage-days";

const NOUNS = { day: "day", user: "user", cluster: "cluster", prefix: "task prefix" } as const;

/** Busy and idle cost as a chart. Costs of a few cents are shown as thread time. The table below has the same numbers. */
export function UsageChart({ used }: { used: Usage }) {
  const data = useMemo(() => usageBars(used), [used]);
  if (data.max === 0) return null;
  const what = data.measure === "cost" ? "Est. cost" : "Thread time";
  const format = data.measure === "cost" ? dollars : durationOrDash;
  const title = `${what} by ${NOUNS[used.by]}`;
  return (
    <Panel
      title={title}
      class="mt"
      testid="usage-chart"
      right={
        <ul class="keylist">
          <li>
            <i class="sw a-cpu" />
            busy
          </li>
          {used.by !== "prefix" && (
            <li>
              <i class="sw a-idle" />
              idle
            </li>
          )}
        </ul>
      }
    >
      {used.by === "day" ? (
        <UsageDays data={data} format={format} label={`${title}, up to ${format(data.max)}`} />
      ) : (
        <UsageRows data={data} format={format} />
      )}
    </Panel>
  );
}

function UsageRows({ data: { bars, max }, format }: { data: UsageBars; format: (v: number) => string }) {
  return (
    <BarRows
      max={max}
      rows={bars.map((bar) => ({
        key: bar.name,
        name: <span title={bar.label}>{bar.label || "unknown"}</span>,
        text: format(bar.busy + bar.idle),
        parts: [
          { key: "busy", value: bar.busy, class: "a-cpu", title: `${format(bar.busy)} busy` },
          { key: "idle", value: bar.idle, class: "a-idle", title: `${format(bar.idle)} idle` },
        ].filter((part) => part.value > 0),
      }))}
    />
  );
}
