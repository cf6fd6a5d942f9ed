import type { RunGroup, RunList } from "../../api/server.gen";
import { useParam } from "../../model/page/hooks";
import { counted } from "../../model/text/format";
import { Empty } from "../../widgets/basics";
import { Pick } from "../../widgets/controls/inputs";
import { connectSnippet } from "../parts/connect-snippet";
import { useTeam, useTitle } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { type Sides, sidesOf } from "./compare-runs";
import { Compared } from "./compared";

const COUNTS = [
  ["1", "run"],
  ["3", "3 runs"],
  ["5", "5 runs"],
  ["10", "10 runs"],
] as const;
const MAX_NAMES = 200;

/** The page that compares computations or clusters of the account. The URL names them; without any, the reader chooses. */
export function ComparePage() {
  const [before] = useParam("before");
  const [after] = useParam("after");
  const { account } = useTeam();
  const hasRuns = before !== "" && after !== "";
  useTitle("Compare");
  return (
    <main class="wide" data-testid="page-compare">
      <div class="crumbs">
        <Link to={[account, "runs"]}>Runs</Link> /{" "}
        {hasRuns ? <Link to={[account, "compare"]}>Compare</Link> : <span>Compare</span>}
      </div>
      {hasRuns ? <Compared before={before} after={after} key={`${before} ${after}`} /> : <ComparePicker />}
    </main>
  );
}

/** Compare runs by name: the last ones against those before, or against another name. The choice is in the URL. */
function ComparePicker() {
  const { api, account } = useTeam();
  const found = useResource<RunList>(() => api.get("runs", { since: "all", limit: MAX_NAMES }), [account]);
  return (
    <Loaded from={found} lines={8}>
      {({ items }) => {
        const named = items.filter((group) => group.name);
        return named.length === 0 ? <NoNames /> : <Chosen groups={named} />;
      }}
    </Loaded>
  );
}

function NoNames() {
  return (
    <>
      <h1>Compare</h1>
      <Empty
        title="No runs with a name yet"
        snippet={`dask.config.set({"daskscope.name": "daily-scores"})\n${connectSnippet()}`}
      >
        Runs of one name are compared with each other. Name a cluster before it is recorded, or on its page.
      </Empty>
    </>
  );
}

function Chosen({ groups }: { groups: readonly RunGroup[] }) {
  const [wanted, setName] = useParam("name");
  const [count, setCount] = useParam("runs", "5");
  const [against, setAgainst] = useParam("against");
  const group = groups.find((one) => one.name === wanted) ?? mostRuns(groups);
  const other = groups.find((one) => one.name === against && one.name !== group.name) ?? null;
  const sides = sidesOf(group, other, Number(count) || 5);
  const names = groups.map((one) => [one.name, one.name] as const);
  return (
    <>
      <div class="viewhead">
        <h1>Compare</h1>
        <div class="filters">
          <Pick label="Runs of" options={names} value={group.name} onChange={setName} testid="compare-name" />
          <Pick label="the last" options={COUNTS} value={count} onChange={setCount} testid="compare-count" />
          <Pick
            label="against"
            all="the runs before"
            options={names.filter(([name]) => name !== group.name)}
            value={other?.name ?? ""}
            onChange={setAgainst}
            testid="compare-against"
          />
        </div>
      </div>
      <Result sides={sides} name={group.name} other={other?.name ?? ""} />
    </>
  );
}

const mostRuns = (groups: readonly RunGroup[]) => groups.reduce((most, one) => (one.runs > most.runs ? one : most));

function Result({ sides, name, other }: { sides: Sides; name: string; other: string }) {
  const { before, after } = sides;
  if (before.length === 0 || after.length === 0)
    return (
      <Empty title="Too few finished runs">
        {after.length === 0
          ? `${name} has no finished run.`
          : other
            ? `${other} has no finished run.`
            : `${name} has ${counted(after.length, "finished run")}, and none before. Choose another name to compare with.`}
      </Empty>
    );
  const text = (ids: readonly string[]) => ids.map(encodeURIComponent).join(",");
  return <Compared before={text(before)} after={text(after)} key={`${text(before)} ${text(after)}`} />;
}
