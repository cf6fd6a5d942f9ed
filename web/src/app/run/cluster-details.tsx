import type { ComponentChildren } from "preact";
import type { OneCluster } from "../../api/server.gen";
import { count, counted, nbytes } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { isLive } from "../parts/pills";
import { Ago, seconds } from "../parts/time-text";

type Row = readonly [label: string, value: ComponentChildren];

/** Details of a cluster beside its run: owner, host and times, clients that hold results, and dropped rows. */
export function ClusterDetails({ c }: { c: OneCluster }) {
  const connected = c.clients.filter(
    (client) => !client.disconnected && (client.client !== "fire-and-forget" || client.held_keys > 0),
  );
  const rows: Row[] = [
    ["Owner", c.user],
    ["Host", c.host || "not recorded"],
    ["Scheduler", c.address || "not recorded"],
    ["ID", c.id],
    ["Started", <Ago at={c.start} />],
    ["Last seen", <Ago at={c.last_seen} />],
    ["Last task", <Ago at={c.last_work} never="none yet" />],
    ["Idle timeout", c.idle_timeout > 0 ? seconds(c.idle_timeout) : "not set"],
    ...connected.map(
      (client): Row => [
        "Client",
        <span title={client.client}>
          {isLive(c) ? "holds" : "held"} {counted(client.held_keys, "result")},{" "}
          {client.held_nbytes >= 0 ? nbytes(client.held_nbytes) : "size unknown"}; last seen{" "}
          <Ago at={client.last_seen} />
        </span>,
      ],
    ),
    ...Object.entries(c.versions).filter(([name]) => ["python", "dask", "distributed"].includes(name)),
    ...Object.entries(c.dropped).map(
      ([table, rows]): Row => [
        "Dropped",
        <span class="bad">
          {count(rows)} {table} rows
        </span>,
      ],
    ),
  ];
  return (
    <Panel title="Cluster" note={c.cost.formula} testid="details">
      <dl class="facts">
        {rows.map(([label, value], i) => (
          <div key={i}>
            <dt>{label}</dt>
            <dd title={typeof value === "string" ? value : undefined}>{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
