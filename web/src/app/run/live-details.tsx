import { useMemo, useState } from "preact/hooks";
import type { LiveRun } from "../../model/live/live-run";
import { count, counted, duration } from "../../model/text/format";
import { Panel, Swatch } from "../../widgets/basics";
import { Search } from "../../widgets/controls/inputs";
import { FlameGraph } from "../../widgets/flame/flame-graph";
import { liveColour } from "../../widgets/live/live-stream";
import type { LiveRange } from "../../widgets/live/use-live-range";
import { CardTable } from "../../widgets/table/card-table";
import { Ago } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";

interface Props {
  run: LiveRun;
  version: number;
  range: LiveRange;
}

const MAX_ROWS = 12;

/** Prefixes, fine metrics, errors and profile of the shown time. */
export function LiveDetails({ run, version, range }: Props) {
  // Whole seconds: the picture moves twice a second, and these are slower to compute.
  const [from, to] = [Math.floor(range.t0 / 1e6), Math.ceil(range.t1 / 1e6)];
  return (
    <>
      <div class="cols">
        <div class="c7">
          <Prefixes run={run} version={version} from={from} to={to} />
        </div>
        <div class="c5">
          <Activities run={run} version={version} from={from} to={to} />
        </div>
      </div>
      <LiveErrors run={run} />
      <Stacks run={run} version={version} from={from} to={to} />
    </>
  );
}

interface Seconds {
  run: LiveRun;
  version: number;
  from: number;
  to: number;
}

function Prefixes({ run, version, from, to }: Seconds) {
  const rows = useMemo(
    () => [...run.busy.byPrefix(from, to)].sort((a, b) => b[1].us - a[1].us).slice(0, MAX_ROWS),
    [run, version, from, to],
  );
  return (
    <Panel title="Time by task prefix" testid="live-prefixes">
      {rows.length === 0 ? (
        <p class="callout">No task ran in this time.</p>
      ) : (
        <CardTable class="compact">
          <thead>
            <tr>
              <th>Prefix</th>
              <th class="num">Tasks</th>
              <th class="num">Thread time</th>
              <th class="num">Mean</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([prefix, sum]) => (
              <tr key={prefix}>
                <td>
                  <Swatch colour={liveColour(prefix)} /> <span class="mono">{run.prefixes[prefix]}</span>
                </td>
                <td class="num">{count(sum.count)}</td>
                <td class="num">{duration(sum.us)}</td>
                <td class="num">{sum.count > 0 ? duration(sum.us / sum.count) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </CardTable>
      )}
    </Panel>
  );
}

function Activities({ run, version, from, to }: Seconds) {
  const rows = useMemo(() => run.activities.sums(from, to, "seconds").slice(0, MAX_ROWS), [run, version, from, to]);
  return (
    <Panel title="Fine performance metrics" testid="live-activities">
      {rows.length === 0 ? (
        <p class="callout">No activity was measured in this time.</p>
      ) : (
        <CardTable class="compact">
          <thead>
            <tr>
              <th>Activity</th>
              <th>Context</th>
              <th class="num">Time</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.context} ${row.label}`}>
                <td>{row.label}</td>
                <td class="faint">{row.context}</td>
                <td class="num">{duration(row.value * 1e6)}</td>
              </tr>
            ))}
          </tbody>
        </CardTable>
      )}
    </Panel>
  );
}

function LiveErrors({ run }: { run: LiveRun }) {
  const { account } = useTeam();
  const errors = [...run.errors.values()].reverse();
  if (errors.length === 0) return null;
  return (
    <Panel title="Errors" note={`in the last ${counted(run.window / 60, "minute")}`} testid="live-errors">
      <CardTable class="compact">
        <thead>
          <tr>
            <th>Error</th>
            <th>Prefix</th>
            <th class="num">Failures</th>
            <th class="num">Last</th>
          </tr>
        </thead>
        <tbody>
          {errors.slice(0, MAX_ROWS).map((error) => (
            <tr key={error.fingerprint}>
              <td>
                <Link to={[account, "errors", error.fingerprint]}>{error.type || "Unnamed error"}</Link>{" "}
                <span class="faint cut">{error.message.slice(0, 160)}</span>
              </td>
              <td class="mono">{error.prefix}</td>
              <td class="num">{count(error.count)}</td>
              <td class="num">
                <Ago at={new Date(error.time_us / 1000).toISOString()} />
              </td>
            </tr>
          ))}
        </tbody>
      </CardTable>
    </Panel>
  );
}

function Stacks({ run, version, from, to }: Seconds) {
  const [search, setSearch] = useState("");
  const flame = useMemo(() => run.stacks.flame(from, to), [run, version, from, to]);
  return (
    <Panel
      title="Profile"
      note={counted(flame.top.total, "sample")}
      testid="live-profile"
      right={<Search label="Search functions" value={search} onInput={setSearch} testid="live-search" />}
    >
      {flame.top.total === 0 ? (
        <p class="callout">No samples in this time. Stacks arrive every few seconds.</p>
      ) : (
        <FlameGraph top={flame.top} search={search} perSample={0} maxRows={30} />
      )}
    </Panel>
  );
}
