import { ClusterTable } from "./cluster-table";

export function Clusters() {
  return (
    <main class="wide" data-testid="page-clusters">
      <div class="viewhead">
        <h1>Clusters</h1>
      </div>
      <ClusterTable name="all" />
    </main>
  );
}
