import type { Comparison } from "../../api/schema.gen";
import { ComparisonView } from "../../viewer/comparison/comparison";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { parseRuns } from "./compare-runs";

/** The comparison of runs, which the API takes as lists of IDs. */
export function Compared({ before, after }: { before: string; after: string }) {
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
