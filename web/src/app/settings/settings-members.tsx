import { useState } from "preact/hooks";
import type { Member, Role, SignInLink } from "../../api/server.gen";
import { ROLES } from "../../api/states.gen";
import { Panel } from "../../widgets/basics";
import { toast } from "../../widgets/toast";
import { ActionButton } from "../parts/action-button";
import { ScrollRegion } from "../parts/scroll-region";
import { Ago } from "../parts/time-text";
import { useCan, useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { OneTimeLink } from "./sign-in-link";

export function Members() {
  const { api, account, me } = useTeam();
  const [link, setLink] = useState<{ user: string; url: string } | null>(null);
  const canAdmin = useCan("admin");
  const members = useResource<{ items: Member[] }>(() => api.get("members"), [account]);
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("member");
  return (
    <Panel title="Members" testid="members">
      <Loaded from={members}>
        {({ items }) => (
          <ScrollRegion label="Members">
            <table class="data">
              <thead>
                <tr>
                  <th>Name</th>
                  <th>Role</th>
                  <th class="num">Since</th>
                  <th />
                </tr>
              </thead>
              <tbody>
                {items.map((m) => (
                  <tr key={m.name} data-testid="member-row">
                    <td>{m.name}</td>
                    <td>
                      {canAdmin ? (
                        <select
                          class="sel"
                          aria-label={`Role of ${m.name}`}
                          value={m.role}
                          onChange={(e) =>
                            void api
                              .send("PUT", `members/${encodeURIComponent(m.name)}`, { role: e.currentTarget.value })
                              .then(members.reload, (error: Error) => {
                                toast(error.message);
                                members.reload();
                              })
                          }
                        >
                          {ROLES.map((r) => (
                            <option key={r}>{r}</option>
                          ))}
                        </select>
                      ) : (
                        m.role
                      )}
                    </td>
                    <td class="num">
                      <Ago at={m.since} />
                    </td>
                    <td class="acts">
                      {canAdmin && (
                        <>
                          {m.name !== me.user && (
                            <>
                              <ActionButton
                                class="sm"
                                run={() =>
                                  api
                                    .send<SignInLink>("POST", `members/${encodeURIComponent(m.name)}/sign-in-link`)
                                    .then((made) => setLink({ user: m.name, url: made.url }))
                                }
                              >
                                Sign-in link
                              </ActionButton>{" "}
                            </>
                          )}
                          <ActionButton
                            class="sm"
                            run={() => api.send("DELETE", `members/${encodeURIComponent(m.name)}`).then(members.reload)}
                          >
                            Remove
                          </ActionButton>
                        </>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </ScrollRegion>
        )}
      </Loaded>
      {link && <OneTimeLink {...link} />}
      {canAdmin && (
        <div class="filters entry">
          <input
            class="txt"
            aria-label="User name"
            placeholder="User name"
            value={name}
            onInput={(e) => setName(e.currentTarget.value)}
            data-testid="member-name"
          />
          <select class="sel" aria-label="Role" value={role} onChange={(e) => setRole(e.currentTarget.value as Role)}>
            {ROLES.map((r) => (
              <option key={r}>{r}</option>
            ))}
          </select>
          <ActionButton
            run={() =>
              api.send("PUT", `members/${encodeURIComponent(name.trim())}`, { role }).then(() => {
                setName("");
                members.reload();
              })
            }
            disabled={!name.trim()}
            testid="add-member"
          >
            Add
          </ActionButton>
        </div>
      )}
    </Panel>
  );
}
