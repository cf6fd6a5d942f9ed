import type { OneError } from "../api/server.gen";
import { count } from "../model/format";
import { Ago, minute } from "./time-text";

export function ErrorMetrics({ group: g }: { group: OneError }) {
  return (
    <dl class="panel metrics eq mt">
      {[
        ["Occurrences", count(g.count), `${count(g.latest.length)} shown below`],
        ["Clusters", count(g.n_clusters), ""],
        ["Users", count(g.users.length), g.users.slice(0, 4).join(", ")],
      ].map(([label, value, note]) => (
        <div class="metric" key={label}>
          <dt>{label}</dt>
          <dd class="v">{value}</dd>
          <dd class="s" title={note}>
            {note}
          </dd>
        </div>
      ))}
      <div class="metric">
        <dt>First seen</dt>
        <dd class="v">
          <Ago at={g.first_seen} />
        </dd>
        <dd class="s">{minute(g.first_seen)}</dd>
      </div>
      <div class="metric">
        <dt>Last seen</dt>
        <dd class="v">
          <Ago at={g.last_seen} />
        </dd>
        <dd class="s">{minute(g.last_seen)}</dd>
      </div>
    </dl>
  );
}
