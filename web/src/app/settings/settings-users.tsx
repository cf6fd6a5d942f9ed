import { useState } from "preact/hooks";
import type { ServerUser, SignInLink } from "../../api/server.gen";
import { Panel } from "../../widgets/basics";
import { ShortTable } from "../../widgets/table/card-table";
import { toast } from "../../widgets/toast";
import { ActionButton } from "../parts/action-button";
import { Ago } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { OneTimeLink } from "./settings-members";

/** All users of the server, for its administrators. */
export function Users() {
  const { api } = useTeam();
  const users = useResource<{ items: ServerUser[] }>(() => api.get("users"), []);
  const [link, setLink] = useState<{ user: string; url: string } | null>(null);
  const change = (user: string, body: { disabled?: boolean; admin?: boolean }) =>
    api.send("PATCH", `users/${encodeURIComponent(user)}`, body).then(users.reload);
  const ask = async (user: string, what: "password-reset" | "sign-in-link") => {
    const made = await api.send<SignInLink>("POST", `users/${encodeURIComponent(user)}/${what}`);
    setLink({ user, url: made.url });
  };
  return (
    <Panel title="Users of the server" note="For administrators" class="mt" testid="users">
      <Loaded from={users}>
        {({ items }) => (
          <ShortTable
            label="Users"
            rows={items}
            keyOf={(u) => u.name}
            testid="user-row"
            columns={[
              ["Name", (u) => u.name],
              ["Rights", (u) => (u.disabled ? "disabled" : u.admin ? "administrator" : "")],
              ["Created", (u) => <Ago at={u.created} />, "num"],
              ["", (u) => <UserActions user={u} change={change} ask={ask} />, "acts"],
            ]}
          />
        )}
      </Loaded>
      {link && <OneTimeLink {...link} />}
      <div class="filters">
        <NewUser created={users.reload} />
      </div>
    </Panel>
  );
}

interface UserActionsProps {
  user: ServerUser;
  change: (user: string, body: { disabled?: boolean; admin?: boolean }) => Promise<unknown>;
  ask: (user: string, what: "password-reset" | "sign-in-link") => Promise<unknown>;
}

function UserActions({ user: u, change, ask }: UserActionsProps) {
  if (u.disabled)
    return (
      <ActionButton class="sm" run={() => change(u.name, { disabled: false })}>
        Enable
      </ActionButton>
    );
  return (
    <>
      <ActionButton class="sm" run={() => ask(u.name, "sign-in-link")}>
        Sign-in link
      </ActionButton>{" "}
      <ActionButton
        class="sm"
        run={async () => {
          if (confirm(`End the password and the sessions of ${u.name}? They choose a new one.`))
            await ask(u.name, "password-reset");
        }}
      >
        Reset password
      </ActionButton>{" "}
      <ActionButton class="sm" run={() => change(u.name, { admin: !u.admin })}>
        {u.admin ? "Remove administrator" : "Make administrator"}
      </ActionButton>{" "}
      <ActionButton
        class="sm"
        run={async () => {
          if (confirm(`Disable ${u.name}? Their sessions and tokens end now.`))
            await change(u.name, { disabled: true });
        }}
      >
        Disable
      </ActionButton>
    </>
  );
}

/** Create a user of the server. Only administrators can. */
function NewUser({ created }: { created: () => void }) {
  const { api, me } = useTeam();
  const [open, set] = useState(false);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  if (!me.admin || me.kind === "local") return null;
  if (!open)
    return (
      <button type="button" class="link push" onClick={() => set(true)} data-testid="new-user">
        New user
      </button>
    );
  const make = async () => {
    await api.send("POST", "users", { name, password });
    toast(`${name} can sign in now`);
    set(false);
    created();
  };
  return (
    <>
      <input
        class="txt"
        aria-label="New user's name"
        placeholder="Name"
        value={name}
        onInput={(e) => setName(e.currentTarget.value)}
        data-testid="user-name"
      />
      <input
        class="txt"
        type="password"
        aria-label="Password"
        placeholder="Password"
        autocomplete="new-password"
        value={password}
        onInput={(e) => setPassword(e.currentTarget.value)}
        data-testid="user-password"
      />
      <ActionButton run={make} testid="make-user">
        Create user
      </ActionButton>
    </>
  );
}
