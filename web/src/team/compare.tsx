import type { Comparison } from "../api/schema.gen";
import { useParam } from "../model/hooks";
import { ComparisonView } from "../pages/comparison";
import { Empty, Panel } from "../widgets/basics";
import { parseRuns } from "./compare-runs";
import { useTeam } from "./context";
import { Link } from "./link";
import { Loaded } from "./loaded";
import { useResource } from "./resources";

/** The page that compares computations or clusters of the account; the URL names them. */
export function ComparePage() {
  const [before] = useParam("before");
  const [after] = useParam("after");
  return (
    <main class="wide headroom" data-testid="page-compare">
      {before && after ? (
        <Compared before={before} after={after} key={`${before} ${after}`} />
      ) : (
        <Panel>
          <Empty title="Nothing to compare">
            Open a computation that ran before, and choose Compare in its earlier runs.
          </Empty>
        </Panel>
      )}
    </main>
  );
}

function Compared({ before, after }: { before: string; after: string }) {
  const { api, account } = useTeam();
  const found = useResource<Comparison>(() => api.get("compare", { before, after }), [before, after, account]);
  return (
    <Loaded from={found} lines={8}>
      {(comparison) => (
        <ComparisonView
          comparison={comparison}
          before={<Runs list={before} names={comparison.before} />}
          after={<Runs list={after} names={comparison.after} />}
        />
      )}
    </Loaded>
  );
}

function Runs({ list, names }: { list: string; names: readonly string[] }) {
  const { account } = useTeam();
  return (
    <>
      {parseRuns(list).map(({ cluster, computation }, i) => (
        <span key={`${cluster} ${computation}`}>
          {i > 0 && ", "}
          <Link to={[account, "clusters", cluster, ...(computation ? ["computations", computation] : [])]}>
            {names[i] ?? computation}
          </Link>
        </span>
      ))}
    </>
  );
}
