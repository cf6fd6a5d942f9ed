import { useMemo } from "preact/hooks";
import type { Usage } from "../../api/server.gen";
import { capital } from "../../model/activity";
import { useParam } from "../../model/page/hooks";
import { count, counted, dollarParts, dollars, duration, money, shares } from "../../model/text/format";
import { type UsageBars, usageBars, usageTicks } from "../../model/usage";
import { BarRows } from "../../widgets/bars/bar-rows";
import { Panel } from "../../widgets/basics";
import { Pick, Seg } from "../../widgets/controls/inputs";
import { MetricStrip } from "../../widgets/metric-strip";
import { useWidth } from "../../widgets/use-canvas";
import { seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { BY, type By, UsageTable } from "./usage-table";

const PERIODS = [
  ["7 days", "7 days"],
  ["30 days", "30 days"],
  ["90 days", "90 days"],
  ["365 days", "year"],
] as const;

/** Usage and cost by day, user, cluster or task prefix. */
export function UsagePage() {
  const { api, account } = useTeam();
  const [by, setBy] = useParam("by", "day");
  const [since, setSince] = useParam("since", "30 days");
  const used = useResource<Usage>(() => api.get("usage", { by, since }), [account, by, since]);
  return (
    <main class="wide" data-testid="page-usage">
      <div class="viewhead">
        <h1>Usage and cost</h1>
        <div class="right">
          <Pick label="Period" options={PERIODS} value={since} onChange={setSince} />
          <Seg label="By" options={BY} value={by as By} onChange={setBy} testid="usage-by" />
        </div>
      </div>
      <Loaded from={used}>
        {(u) => (
          <>
            <CostSentence used={u} period={PERIODS.find(([id]) => id === since)?.[1] ?? since} />
            <MetricStrip
              metrics={[
                ["Clusters", count(u.clusters), ""],
                ["Thread time", seconds(u.total.thread_seconds), "worker threads × their uptime"],
                ["Est. cost", money(u.total.cost), "based on your prices"],
                ["Busy", moneyParts(u)[0], u.total.cost > 0 ? `${split(u)[0]} of it` : ""],
                ["Idle", moneyParts(u)[1], u.total.cost > 0 ? `${split(u)[1]} of it` : ""],
              ].map(([label, value, note]) => ({ id: label, label, value, note }))}
            />
            <UsageChart used={u} />
            <Panel class="mt">
              <UsageTable used={u} />
            </Panel>
          </>
        )}
      </Loaded>
    </main>
  );
}

/** Busy and idle shares of the cost. They add up to 100 %. */
export function split({ total }: Usage): string[] {
  return shares([total.cost_busy, total.cost_idle]);
}

/** Busy and idle cost. They add up to the cost as it is shown. */
function moneyParts({ total }: Usage): string[] {
  return dollarParts([total.cost_busy, total.cost_idle]).map((text) => text.replace("<", "less than "));
}

/** The cost in a sentence. */
function CostSentence({ used: u, period }: { used: Usage; period: string }) {
  const when = `the last ${period}`;
  return (
    <p class="answer lead" data-testid="answer">
      {u.total.cost > 0 ? (
        <>
          <b>
            {capital(money(u.total.cost))} in {when} (estimate).{" "}
          </b>{" "}
          <span>{split(u)[1]} of it for idle threads.</span>
        </>
      ) : (
        <b>No cost in {when}.</b>
      )}
    </p>
  );
}

const NOUNS = { day: "day", user: "user", cluster: "cluster", prefix: "task prefix" } as const;

/** Busy and idle cost as a chart. Costs of a few cents are shown as thread time. The table below has the same numbers. */
function UsageChart({ used }: { used: Usage }) {
  const data = useMemo(() => usageBars(used), [used]);
  if (data.max === 0) return null;
  const what = data.measure === "cost" ? "Est. cost" : "Thread time";
  const format = data.measure === "cost" ? dollars : duration;
  const title = `${what} by ${NOUNS[used.by]}`;
  return (
    <Panel
      title={title}
      note={data.bars.length < used.items.length && used.by === "day" ? `last ${counted(data.bars.length, "day")}` : ""}
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

const HEIGHT = 150;
const TOP = 8;
const AXIS = 20;
const GUTTER = 74;

/** One column per day, with busy below idle. */
function UsageDays({ data, format, label }: { data: UsageBars; format: (v: number) => string; label: string }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const { bars, max, measure } = data;
  const base = HEIGHT - AXIS;
  const y = (value: number) => base - (max > 0 ? value / max : 0) * (base - TOP);
  const step = Math.max(1, width - GUTTER) / bars.length;
  const thick = Math.max(1, Math.min(36, step * 0.76));
  const every = Math.max(1, Math.ceil(78 / step));
  return (
    <div class="usagedays" ref={box}>
      <svg width={width} height={HEIGHT} role="img" aria-label={label}>
        <defs>
          <pattern id="usage-idle" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect width="6" height="6" fill="var(--act-idle)" />
            <rect width="1.500" height="6" fill="var(--act-idle-hatch)" />
          </pattern>
        </defs>
        {usageTicks(measure, max).map((value) => (
          <g key={value}>
            <path d={`M${GUTTER} ${Math.round(y(value)) + 0.5}H${width}`} stroke="var(--line-faint)" />
            <text x={GUTTER - 8} y={y(value) + 4} text-anchor="end">
              {value === 0 ? "0" : format(value).replace(/ 0 (s|min)$/, "")}
            </text>
          </g>
        ))}
        {bars.map((bar, i) => {
          const x = GUTTER + i * step + (step - thick) / 2;
          const middle = y(bar.busy);
          return (
            <g key={bar.name}>
              {bar.idle > 0 && (
                <rect
                  x={x}
                  y={y(bar.busy + bar.idle)}
                  width={thick}
                  height={middle - y(bar.busy + bar.idle)}
                  fill="url(#usage-idle)"
                />
              )}
              {bar.busy > 0 && <rect x={x} y={middle} width={thick} height={base - middle} fill="var(--act-cpu)" />}
              {(bars.length - 1 - i) % every === 0 && (
                <text x={Math.min(x + thick / 2, width - 18)} y={HEIGHT - 5} text-anchor="middle">
                  {bar.name.slice(5)}
                </text>
              )}
              <rect x={GUTTER + i * step} y={0} width={step} height={base} fill="transparent">
                <title>{`${bar.name}: ${format(bar.busy)} busy, ${format(bar.idle)} idle`}</title>
              </rect>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
