import type { OneCluster } from "../../api/server.gen";
import { count, counted, nbytes } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { Person } from "../parts/person";
import { isLive } from "../parts/pills";
import { Ago, seconds } from "../parts/time-text";

export function ClusterDetails({ c }: { c: OneCluster }) {
  const connected = c.clients.filter(
    (client) => !client.disconnected && (client.client !== "fire-and-forget" || client.held_keys > 0),
  );
  return (
    <Panel title="Details">
      <dl class="kv">
        <dt>Owner</dt>
        <dd>
          <Person name={c.user} />
        </dd>
        <dt>Host</dt>
        <dd>{c.host || "not recorded"}</dd>
        <dt>Scheduler</dt>
        <dd class="mono">{c.address || "not recorded"}</dd>
        <dt>Started</dt>
        <dd>
          <Ago at={c.start} />
        </dd>
        <dt>Last seen</dt>
        <dd>
          <Ago at={c.last_seen} />
        </dd>
        <dt>Last task</dt>
        <dd>
          <Ago at={c.last_work} never="none yet" />
        </dd>
        <dt>Idle timeout</dt>
        <dd>{c.idle_timeout > 0 ? seconds(c.idle_timeout) : "not set"}</dd>
        {connected.map((client) => (
          <>
            <dt key={client.client}>Client</dt>
            <dd title={client.client}>
              {isLive(c) ? "holds" : "held"} {counted(client.held_keys, "result")},{" "}
              {client.held_nbytes >= 0 ? nbytes(client.held_nbytes) : "size unknown"}; last seen{" "}
              <Ago at={client.last_seen} />
            </dd>
          </>
        ))}
        {Object.entries(c.versions)
          .filter(([name]) => ["python", "dask", "distributed"].includes(name))
          .map(([name, version]) => (
            <>
              <dt key={name}>{name}</dt>
              <dd>{version}</dd>
            </>
          ))}
        {Object.entries(c.dropped).map(([table, rows]) => (
          <>
            <dt key={table}>Dropped</dt>
            <dd class="bad">
              {count(rows)} {table} rows
            </dd>
          </>
        ))}
      </dl>
      <div class="pfoot">
        <span>{c.cost.formula}</span>
      </div>
    </Panel>
  );
}
