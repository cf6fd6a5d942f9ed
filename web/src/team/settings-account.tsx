import { useState } from "preact/hooks";
import { Empty, Panel } from "../widgets/basics";
import { ActionButton } from "./action-button";
import { useTeam } from "./context";

/** Shown when sign-in is off: there are no users, members or tokens. */
export function SignInOff() {
  return (
    <Panel>
      <Empty title="Sign-in is off" snippet="daskscope serve --login">
        Anyone with the URL that contains the secret can do everything. Start it with sign-in to have users, roles and
        tokens:
      </Empty>
    </Panel>
  );
}

export function YourAccount() {
  const { api, me } = useTeam();
  const [old, setOld] = useState("");
  const [next, setNext] = useState("");
  const [revoke, setRevoke] = useState(false);
  const change = () =>
    api.send("POST", "me/password", { old, new: next, revoke_tokens: revoke }).then(() => location.reload());
  return (
    <Panel title="Your account" testid="profile">
      <dl class="kv">
        <dt>Name</dt>
        <dd>{me.user}</dd>
        <dt>Accounts</dt>
        <dd>{me.accounts.map((a) => `${a.name} (${a.role})`).join(", ")}</dd>
        {me.admin && (
          <>
            <dt>Server</dt>
            <dd>administrator</dd>
          </>
        )}
      </dl>
      {me.kind === "session" && (
        <div class="filters entry">
          <input
            class="txt"
            type="password"
            aria-label="Current password"
            placeholder="Current password"
            autocomplete="current-password"
            value={old}
            onInput={(e) => setOld(e.currentTarget.value)}
          />
          <input
            class="txt"
            type="password"
            aria-label="New password, at least 10 characters"
            placeholder="New password"
            autocomplete="new-password"
            value={next}
            onInput={(e) => setNext(e.currentTarget.value)}
          />
          <label class="check">
            <input
              type="checkbox"
              checked={revoke}
              onChange={(e) => setRevoke(e.currentTarget.checked)}
              data-testid="revoke-tokens"
            />{" "}
            Revoke all my tokens too
          </label>
          <ActionButton run={change} disabled={!old || next.length < 10}>
            Change password
          </ActionButton>
        </div>
      )}
    </Panel>
  );
}
