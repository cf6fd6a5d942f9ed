import { useState } from "preact/hooks";
import type { Member, Role, SignInLink } from "../../api/server.gen";
import { ROLES } from "../../api/states.gen";
import { Panel } from "../../widgets/basics";
import { copy } from "../../widgets/clipboard";
import { ShortTable } from "../../widgets/table/card-table";
import { toast } from "../../widgets/toast";
import { ActionButton } from "../parts/action-button";
import { Ago } from "../parts/time-text";
import { useCan, useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";

const urlOf = (name: string) => `members/${encodeURIComponent(name)}`;

function RoleChoice(props: { label: string; value: Role; onChange: (role: Role) => void }) {
  return (
    <select
      class="sel"
      aria-label={props.label}
      value={props.value}
      onChange={(e) => props.onChange(e.currentTarget.value as Role)}
    >
      {ROLES.map((role) => (
        <option key={role}>{role}</option>
      ))}
    </select>
  );
}

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
          <ShortTable
            label="Members"
            rows={items}
            keyOf={(m) => m.name}
            testid="member-row"
            columns={[
              ["Name", (m) => m.name],
              [
                "Role",
                (m) =>
                  canAdmin ? (
                    <RoleChoice
                      label={`Role of ${m.name}`}
                      value={m.role}
                      onChange={(role) =>
                        void api.send("PUT", urlOf(m.name), { role }).then(members.reload, (error: Error) => {
                          toast(error.message);
                          members.reload();
                        })
                      }
                    />
                  ) : (
                    m.role
                  ),
              ],
              ["Since", (m) => <Ago at={m.since} />, "num"],
              [
                "",
                (m) =>
                  canAdmin && (
                    <>
                      {m.name !== me.user && (
                        <>
                          <ActionButton
                            class="sm"
                            run={() =>
                              api
                                .send<SignInLink>("POST", `${urlOf(m.name)}/sign-in-link`)
                                .then((made) => setLink({ user: m.name, url: made.url }))
                            }
                          >
                            Sign-in link
                          </ActionButton>{" "}
                        </>
                      )}
                      <ActionButton class="sm" run={() => api.send("DELETE", urlOf(m.name)).then(members.reload)}>
                        Remove
                      </ActionButton>
                    </>
                  ),
                "acts",
              ],
            ]}
          />
        )}
      </Loaded>
      {link && <OneTimeLink {...link} />}
      {canAdmin && (
        <div class="filters">
          <input
            class="txt"
            aria-label="User name"
            placeholder="User name"
            value={name}
            onInput={(e) => setName(e.currentTarget.value)}
            data-testid="member-name"
          />
          <RoleChoice label="Role" value={role} onChange={setRole} />
          <ActionButton
            run={() =>
              api.send("PUT", urlOf(name.trim()), { role }).then(() => {
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

/** A link for another user, to copy. It works once. */
export function OneTimeLink({ user, url }: { user: string; url: string }) {
  return (
    <div class="callout" role="status">
      Give this link to {user} only. It works once, within an hour: <code data-testid="sign-in-link">{url}</code>{" "}
      <button type="button" class="btn sm" onClick={() => copy(url, "Link copied")}>
        Copy
      </button>
    </div>
  );
}
