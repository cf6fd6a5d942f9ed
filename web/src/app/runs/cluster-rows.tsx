import type { Cluster, ClusterList } from "../../api/server.gen";
import { Icon } from "../../widgets/icon";
import { CardTable } from "../../widgets/table/card-table";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import type { ClusterColumn } from "./cluster-columns";

function ColumnHeader({ col, sort, onSort }: { col: ClusterColumn; sort: string; onSort: (sort: string) => void }) {
  const by = col.sort;
  if (!by) return <th class={col.num ? "num" : ""}>{col.head}</th>;
  const now = sort === `-${by}` ? "descending" : sort === by ? "ascending" : undefined;
  return (
    <th class={col.num ? "num" : ""} aria-sort={now}>
      <button type="button" onClick={() => onSort(now === "descending" ? by : `-${by}`)} data-testid={`sort-${col.id}`}>
        {col.head}
        {now && <Icon name={now === "descending" ? "chev" : "up"} />}
      </button>
    </th>
  );
}

interface Props {
  clusters: readonly Cluster[];
  columns: readonly ClusterColumn[];
  busy: ClusterList["busy"];
  sort: string;
  onSort: (sort: string) => void;
  onTag: (tag: string) => void;
  onUser: (user: string) => void;
}

/** A table of clusters. Tags and owners set a filter. */
export function ClusterRows({ clusters, columns, busy, sort, onSort, onTag, onUser }: Props) {
  const { account } = useTeam();
  return (
    <div class="tablebox scroll" tabIndex={0} role="region" aria-label="Clusters">
      <CardTable>
        <thead>
          <tr>
            <th>Cluster</th>
            {columns.map((c) => (
              <ColumnHeader key={c.id} col={c} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {clusters.map((c) => (
            <tr key={c.id} data-testid="cluster-row">
              <td>
                <Link class="name" to={[account, "clusters", c.id]} title={c.id}>
                  {c.name || c.id}
                </Link>
                {c.tags.map((t) => (
                  <button type="button" class="sub tagbtn" key={t} onClick={() => onTag(t)}>
                    {t}
                  </button>
                ))}
              </td>
              {columns.map((col) => (
                <td key={col.id} class={col.num ? "num" : ""}>
                  {col.id === "user" ? (
                    <button
                      type="button"
                      class="plainbtn"
                      title={`Show only clusters of ${c.user}`}
                      onClick={() => onUser(c.user)}
                    >
                      {col.cell(c, [])}
                    </button>
                  ) : (
                    col.cell(c, busy[c.id] ?? [])
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </CardTable>
    </div>
  );
}
