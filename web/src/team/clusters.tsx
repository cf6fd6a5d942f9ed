import { ClusterTable } from "./cluster-table";
import { useTeam } from "./context";
import { Link } from "./link";

export function Clusters() {
  const { account } = useTeam();
  return (
    <main class="wide" data-testid="page-clusters">
      <div class="viewhead">
        <h1>Clusters</h1>
        <div class="right">
          <Link to={[account, "compare"]} class="btn sm" testid="compare-link">
            Compare runs
          </Link>
        </div>
      </div>
      <ClusterTable name="all" />
    </main>
  );
}
