import type { Failure } from "../api/server.gen";
import { count } from "../model/format";
import { Panel } from "../widgets/basics";
import { CardTable } from "../widgets/card-table";
import { useTeam } from "./context";
import { Link } from "./link";
import { ScrollRegion } from "./scroll-region";
import { Ago } from "./time-text";

interface Props {
  failures: readonly Failure[];
  selected: number;
  onSelect: (index: number) => void;
}

/** The latest occurrences of an error. A button shows the traceback of an occurrence. */
export function Occurrences({ failures, selected, onSelect }: Props) {
  const { account } = useTeam();
  return (
    <Panel title="Occurrences" class="mt">
      <ScrollRegion label="Occurrences">
        <CardTable>
          <thead>
            <tr>
              <th>Cluster</th>
              <th>Prefix</th>
              <th>User</th>
              <th class="num">Count</th>
              <th class="num">Time</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {failures.map((f, i) => (
              <tr key={f.id} class={i === selected ? "sel" : ""}>
                <td>
                  {f.computation_id ? (
                    <Link to={[account, "clusters", f.cluster_id, "computations", f.computation_id]}>
                      {f.cluster_name || f.cluster_id}
                    </Link>
                  ) : (
                    <Link to={[account, "clusters", f.cluster_id]}>{f.cluster_name || f.cluster_id}</Link>
                  )}
                </td>
                <td class="mono">{f.prefix}</td>
                <td>{f.user}</td>
                <td class="num">
                  {count(f.count)}
                  {f.will_retry ? " (retried)" : ""}
                </td>
                <td class="num">
                  <Ago at={f.time} />
                </td>
                <td>
                  {f.traceback && (
                    <button type="button" class="link" onClick={() => onSelect(i)}>
                      Show traceback
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </CardTable>
      </ScrollRegion>
    </Panel>
  );
}
