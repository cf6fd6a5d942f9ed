import type { Failure, OneComputation } from "../api/server.gen";
import { Panel } from "../widgets/basics";
import { useTeam } from "./context";
import { Link } from "./link";
import { useResource } from "./resources";
import { SourceCode } from "./source-code";

/** The code of the failed computation, if it was recorded. */
export function ErrorCode({ failure: f }: { failure: Failure }) {
  const { api, account } = useTeam();
  const found = useResource<OneComputation>(
    () => api.get(`clusters/${encodeURIComponent(f.cluster_id)}/computations/${encodeURIComponent(f.computation_id)}`),
    [account, f.cluster_id, f.computation_id],
  );
  if (!found.value?.code) return null;
  return (
    <Panel
      title="Failed computation"
      note={found.value.code_file}
      right={<Link to={[account, "clusters", f.cluster_id, "computations", f.computation_id]}>Open</Link>}
      class="mt"
      testid="error-code"
    >
      <SourceCode code={found.value.code} hot={found.value.code_line} />
    </Panel>
  );
}
