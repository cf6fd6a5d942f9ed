import { useEffect, useRef, useState } from "preact/hooks";
import { AUDIT_DAYS } from "../../api/limits.gen";
import type { Page } from "../../api/server";
import type { AuditEvent } from "../../api/server.gen";
import { AUDIT_ACTIONS } from "../../api/states.gen";
import { Panel } from "../../widgets/basics";
import { Pick } from "../../widgets/controls/inputs";
import { ShortTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
import { Ago } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { usePages, useResource } from "../shell/resources";

const PAGE_SIZE = 25;

/** The details of an event as a text: `role: member, before: viewer`. */
export function detailText(details: Record<string, unknown>): string {
  return Object.entries(details)
    .filter(([, value]) => value !== null && value !== "" && value !== false)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}

/** Who did what in the account, and on the server for administrators. */
export function AuditLog() {
  const { api, account, me } = useTeam();
  const [action, setAction] = useState("");
  const query = { action, limit: PAGE_SIZE };
  const key = [account, action];
  const first = useResource<Page<AuditEvent>>(() => api.get("audit", query), key);
  const reload = useRef(first.reload);
  reload.current = first.reload;
  useEffect(() => api.onSent(() => reload.current()), [api]);
  const { items, more, load } = usePages<AuditEvent, Page<AuditEvent>>(
    first,
    (cursor) => api.get("audit", { ...query, cursor }),
    (e) => String(e.id),
    key,
  );
  return (
    <Panel
      title="Audit log"
      note={`This account${me.admin ? " and the server" : ""}, kept for ${AUDIT_DAYS} days`}
      class="mt"
      testid="audit"
    >
      <div class="filters">
        <Pick
          label="Action"
          options={AUDIT_ACTIONS.map((name) => [name, name.replaceAll("-", " ")] as const)}
          value={action}
          all="all"
          onChange={setAction}
          testid="audit-action"
        />
      </div>
      <Loaded from={first}>
        {() =>
          items.length === 0 ? (
            <p class="callout">No events.</p>
          ) : (
            <ShortTable
              label="Audit log"
              rows={items}
              keyOf={(e) => e.id}
              testid="audit-row"
              columns={[
                ["Time", (e) => <Ago at={e.time} now="just now" />],
                ["User", (e) => e.user],
                ["Action", (e) => e.action.replaceAll("-", " ")],
                ["Subject", (e) => <span class="cut">{e.subject}</span>],
                ["Address", (e) => e.address, "mono"],
                ["Details", (e) => detailText(e.details), "wrap"],
              ]}
            />
          )
        }
      </Loaded>
      {more && (
        <div class="pfoot">
          <ActionButton run={load} testid="audit-more">
            Show more
          </ActionButton>
        </div>
      )}
    </Panel>
  );
}
