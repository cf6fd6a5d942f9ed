import { useState } from "preact/hooks";
import { Empty, Panel } from "../../widgets/basics";
import { ActionButton } from "../parts/action-button";
import { useTeam } from "../shell/context";

/** Shown when sign-in is off: there are no users, members or tokens. */
export function SignInOff() {
  return (
    <Panel>
      <Empty title="Sign-in is off" snippet="daskscope serve --login">
        Anyone with the URL that contains the secret can do everything. To have users, roles and tokens, start the
        server with sign-in:
      </Empty>
    </Panel>
  );
}

interface LeftToken {
  account: string;
  hint: string;
  label: string;
}

/** The tokens that still work after a password change. Its sessions have ended, so the user signs in again to revoke some. */
function LeftTokens({ tokens }: { tokens: readonly LeftToken[] }) {
  return (
    <div class="callout" role="status" data-testid="left-tokens">
      <p>Password changed. These tokens still work. Sign in again to revoke those you don't know:</p>
      <ul>
        {tokens.map((token) => (
          <li key={`${token.account} ${token.hint}`}>
            {token.label || "Unnamed token"} <code>{token.hint}</code> of {token.account}
          </li>
        ))}
      </ul>
      <button type="button" class="btn sm" onClick={() => location.reload()}>
        Sign in
      </button>
    </div>
  );
}

export function YourAccount() {
  const { api, me } = useTeam();
  const [old, setOld] = useState("");
  const [next, setNext] = useState("");
  const [revoke, setRevoke] = useState(false);
  const [left, setLeft] = useState<LeftToken[]>([]);
  const change = async () => {
    const body = { old, new: next, revoke_tokens: revoke };
    const { tokens } = await api.send<{ tokens: LeftToken[] }>("POST", "me/password", body);
    if (tokens.length > 0) setLeft(tokens);
    else location.reload();
  };
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
      {left.length > 0 && <LeftTokens tokens={left} />}
      {me.kind === "session" && left.length === 0 && (
        <div class="filters">
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
