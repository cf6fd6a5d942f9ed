import type { Comparison } from "../../api/schema.gen";
import { useParam } from "../../model/page/hooks";
import { ComparisonView } from "../../viewer/comparison";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { ComparePicker } from "./compare-picker";
import { parseRuns } from "./compare-runs";

/** The page that compares computations or clusters of the account. The URL names them; without any, the reader chooses. */
export function ComparePage() {
  const [before] = useParam("before");
  const [after] = useParam("after");
  const { account } = useTeam();
  const hasRuns = before !== "" && after !== "";
  return (
    <>
      {hasRuns && (
        <div class="crumbs wide">
          <Link to={[account, "compare"]}>Compare</Link> / <span>Comparison</span>
        </div>
      )}
      <main class={hasRuns ? "wide headroom" : "wide"} data-testid="page-compare">
        {hasRuns ? <Compared before={before} after={after} key={`${before} ${after}`} /> : <ComparePicker />}
      </main>
    </>
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
