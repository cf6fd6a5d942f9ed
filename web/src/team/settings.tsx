import { useState } from "preact/hooks";
import type { AccountPreferences, Member, Role, Token } from "../api/server.gen";
import { counted } from "../model/format";
import { copy, Empty, Panel, Pick } from "../widgets/basics";
import { toast } from "../widgets/toast";
import { useMay, useResource, useTeam } from "./context";
import { Act, Ago, Loaded, Scroll } from "./parts";

/** Members, tokens, prices and what is kept; who may only look sees it without buttons. */
export function Settings() {
  const { me, account } = useTeam();
  return (
    <main class="wide" data-testid="page-settings">
      <div class="viewhead"><h1>Settings</h1><span class="note">{account}; you are {me.accounts.find((a) => a.name === account)?.role ?? "the only user"}</span></div>
      <div class="cols">
        <div class="c6">{me.kind !== "local" && <Members />}<Prices /></div>
        <div class="c6">{me.kind === "local" ? <Alone /> : <><Profile /><Tokens /></>}</div>
      </div>
    </main>
  );
}

function Members() {
  const { api, account } = useTeam();
  const admin = useMay("admin");
  const members = useResource<{ items: Member[] }>(() => api.get("members"), [account]);
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("member");
  return (
    <Panel title="Members" testid="members">
      <Loaded from={members}>
        {({ items }) => (
          <Scroll label="Members"><table class="data">
            <thead><tr><th>Name</th><th>Role</th><th class="num">Since</th><th /></tr></thead>
            <tbody>
              {items.map((m) => (
                <tr key={m.name} data-testid="member-row">
                  <td>{m.name}</td>
                  <td>{admin ? <select class="sel" aria-label={`Role of ${m.name}`} value={m.role} onChange={(e) => void api.send("PUT", `members/${encodeURIComponent(m.name)}`, { role: e.currentTarget.value }).then(members.reload, (error: Error) => { toast(error.message); members.reload(); })}>{["viewer", "member", "owner"].map((r) => <option key={r}>{r}</option>)}</select> : m.role}</td>
                  <td class="num"><Ago at={m.since} /></td>
                  <td class="acts">{admin && <Act class="sm" run={() => api.send("DELETE", `members/${encodeURIComponent(m.name)}`).then(members.reload)}>Remove</Act>}</td>
                </tr>
              ))}
            </tbody>
          </table></Scroll>
        )}
      </Loaded>
      {admin && (
        <div class="filters entry">
          <input class="txt" aria-label="Name of a user" placeholder="Name of a user" value={name} onInput={(e) => setName(e.currentTarget.value)} data-testid="member-name" />
          <select class="sel" aria-label="Role" value={role} onChange={(e) => setRole(e.currentTarget.value as Role)}>{["viewer", "member", "owner"].map((r) => <option key={r}>{r}</option>)}</select>
          <Act run={() => api.send("PUT", `members/${encodeURIComponent(name.trim())}`, { role }).then(() => { setName(""); members.reload(); })} disabled={!name.trim()} testid="add-member">Add</Act>
          <NewUser />
        </div>
      )}
    </Panel>
  );
}

/** A user of the server; whoever runs it may make one. */
function NewUser() {
  const { api, me } = useTeam();
  const [open, set] = useState(false);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  if (!me.admin || me.kind === "local") return null;
  if (!open) return <button type="button" class="link push" onClick={() => set(true)} data-testid="new-user">New user</button>;
  const make = async () => {
    await api.send("POST", "users", { name, password });
    toast(`${name} can log in now`);
    set(false);
  };
  return (
    <>
      <input class="txt" aria-label="New user's name" placeholder="name" value={name} onInput={(e) => setName(e.currentTarget.value)} data-testid="user-name" />
      <input class="txt" type="password" aria-label="Password" placeholder="password" autocomplete="new-password" value={password} onInput={(e) => setPassword(e.currentTarget.value)} data-testid="user-password" />
      <Act run={make} testid="make-user">Make user</Act>
    </>
  );
}

const MAY = [["ingest,read,write", "record, read and change"], ["ingest", "record only"], ["read", "read only"]] as const;
const ADMIN = ["ingest,read,write,admin", "everything, members too"] as const;
const UNTIL = [["", "for ever"], ["30", "30 days"], ["90", "90 days"], ["365", "a year"]] as const;

function Tokens() {
  const { api, account } = useTeam();
  const may = useMay("write");
  const admin = useMay("admin");
  const tokens = useResource<{ items: Token[] }>(() => api.get("tokens"), [account]);
  const [label, setLabel] = useState("");
  const [scopes, setScopes] = useState<string>(MAY[0][0]);
  const [days, setDays] = useState("");
  const [secret, setSecret] = useState("");
  const make = async () => {
    const made = await api.send<{ token: string }>("POST", "tokens", { label, scopes: scopes.split(","), ...(days ? { days_to_expire: Number(days) } : {}) });
    setSecret(made.token);
    setLabel("");
    tokens.reload();
  };
  return (
    <Panel title="Your tokens" note="for programs" class="mt" testid="tokens">
      <Loaded from={tokens}>
        {({ items }) => items.length === 0 ? <p class="callout">No tokens. A command line gets one with daskscope login.</p> : (
          <Scroll label="Tokens"><table class="data">
            <thead><tr><th>Token</th><th>For</th><th>May</th><th class="num">Last used</th><th class="num">Until</th><th /></tr></thead>
            <tbody>
              {items.map((t) => (
                <tr key={t.id} data-testid="token-row">
                  <td class="mono">{t.hint}…</td>
                  <td><span class="cut">{t.label}</span>{t.recorders > 0 && <span class="sub">{counted(t.recorders, "recorder")}</span>}</td>
                  <td class="wrap">{t.scopes.join(", ")}</td>
                  <td class="num"><Ago at={t.used} never="never" /></td>
                  <td class="num">{t.expires ? t.expires.slice(0, 10) : "for ever"}</td>
                  <td class="acts">{may && <Act class="sm" run={async () => { if (confirm(`Revoke ${t.label || t.hint}? Whatever uses it is refused from then on${t.recorders > 0 ? `, and ${counted(t.recorders, "cluster")} cannot send any more` : ""}.`)) await api.send("DELETE", `tokens/${t.id}`).then(tokens.reload); }}>Revoke</Act>}</td>
                </tr>
              ))}
            </tbody>
          </table></Scroll>
        )}
      </Loaded>
      {secret && (
        <div class="callout">
          This is shown only now: <code data-testid="token-secret">{secret}</code> <button type="button" class="btn sm" onClick={() => copy(secret, "Token copied")}>Copy</button>
          {" "}A program takes it from <code>DASKSCOPE_TOKEN</code>, a command line from <code>daskscope login --server {location.origin}{api.root} --token …</code>
        </div>
      )}
      {may && (
        <div class="filters entry">
          <input class="txt" aria-label="What it is for" placeholder="What it is for" value={label} onInput={(e) => setLabel(e.currentTarget.value)} data-testid="token-label" />
          <Pick label="May" options={admin ? [...MAY, ADMIN] : MAY} value={scopes} onChange={setScopes} testid="token-scopes" />
          <Pick label="Until" options={UNTIL} value={days} onChange={setDays} testid="token-days" />
          <Act run={make} testid="make-token">Make a token</Act>
        </div>
      )}
    </Panel>
  );
}

const NUMBERS: readonly (readonly [keyof AccountPreferences, string, string])[] = [
  ["core_hour", "Dollars an hour for a core", "0.01"],
  ["gib_hour", "Dollars an hour for a GiB of memory", "0.001"],
  ["keep_rows_days", "Days every task is kept; 0: as the server says", "1"],
  ["keep_sums_days", "Days totals are kept; 0: as the server says", "1"],
  ["keep_rows_nbytes", "Bytes of tasks beyond which the oldest go; 0: no limit", "1000000"],
];

function Prices() {
  const { api, account } = useTeam();
  const admin = useMay("admin");
  const held = useResource<AccountPreferences>(() => api.get("preferences"), [account]);
  const [changes, set] = useState<Partial<AccountPreferences>>({});
  const save = () => api.send("PATCH", "preferences", changes).then(() => { set({}); held.reload(); toast("Saved"); });
  return (
    <Panel title="Prices, privacy and retention" note="every cost is an estimate from these" class="mt" testid="preferences">
      <Loaded from={held}>
        {(p) => {
          const now = { ...p, ...changes };
          return (
            <dl class="kv form">
              {NUMBERS.map(([name, label, step]) => (
                <>
                  <dt key={name}><label for={name}>{label}</label></dt>
                  <dd><input id={name} class="txt" type="number" min="0" step={step} value={String(now[name])} disabled={!admin} onInput={(e) => set({ ...changes, [name]: Number(e.currentTarget.value) })} /></dd>
                </>
              ))}
              <dt><label for="visibility">Who may see a new report</label></dt>
              <dd><select id="visibility" class="sel" value={now.visibility} disabled={!admin} onChange={(e) => set({ ...changes, visibility: e.currentTarget.value as AccountPreferences["visibility"] })}><option value="public">whoever has the link</option><option value="private">members</option></select></dd>
              <dt>Prices by tag, name or queue<br /><small class="faint">an hour of a core, of a GiB</small></dt>
              <dd><Overrides held={now.price_overrides} disabled={!admin} onChange={(price_overrides) => set({ ...changes, price_overrides })} /></dd>
            </dl>
          );
        }}
      </Loaded>
      {admin && <div class="pfoot"><Act class="primary push" run={save} disabled={Object.keys(changes).length === 0} testid="save-preferences">Save</Act></div>}
    </Panel>
  );
}

function Overrides({ held, disabled, onChange }: { held: AccountPreferences["price_overrides"]; disabled: boolean; onChange: (next: AccountPreferences["price_overrides"]) => void }) {
  const [name, setName] = useState("");
  return (
    <>
      {Object.entries(held).map(([key, prices]) => (
        <div key={key} class="override">
          <span class="tag">{key}</span>
          <input class="txt" type="number" min="0" step="0.01" aria-label={`Dollars an hour for a core of ${key}`} value={String(prices.core_hour ?? "")} disabled={disabled} onInput={(e) => onChange({ ...held, [key]: { ...prices, core_hour: Number(e.currentTarget.value) } })} />
          <input class="txt" type="number" min="0" step="0.001" aria-label={`Dollars an hour for a GiB of memory of ${key}`} value={String(prices.gib_hour ?? "")} disabled={disabled} onInput={(e) => onChange({ ...held, [key]: { ...prices, gib_hour: Number(e.currentTarget.value) } })} />
          {!disabled && <button type="button" class="link" onClick={() => onChange(Object.fromEntries(Object.entries(held).filter(([other]) => other !== key)))}>remove</button>}
        </div>
      ))}
      {!disabled && <div class="override"><input class="txt" aria-label="Tag, name or queue" placeholder="tag, name or queue" value={name} onInput={(e) => setName(e.currentTarget.value)} /><button type="button" class="btn sm" disabled={!name.trim()} onClick={() => { onChange({ ...held, [name.trim()]: { core_hour: 0.05, gib_hour: 0.005 } }); setName(""); }}>Add</button></div>}
    </>
  );
}

/** A server on one's own machine: nobody logs in, so there is nobody else. */
function Alone() {
  return (
    <Panel>
      <Empty title="This server asks for no login" snippet="daskscope serve --login">
        Whoever reaches it on this machine may do everything. With a login there are users, teams with roles, and tokens for programs:
      </Empty>
    </Panel>
  );
}

function Profile() {
  const { api, me } = useTeam();
  const [old, setOld] = useState("");
  const [next, setNext] = useState("");
  const change = () => api.send("POST", "me/password", { old, new: next }).then(() => location.reload());
  return (
    <Panel title="You" testid="profile">
      <dl class="kv">
        <dt>Name</dt><dd>{me.user}</dd>
        <dt>Accounts</dt><dd>{me.accounts.map((a) => `${a.name} (${a.role})`).join(", ")}</dd>
        {me.admin && <><dt>Server</dt><dd>you may make users and accounts</dd></>}
      </dl>
      {me.kind === "session" && (
        <div class="filters entry">
          <input class="txt" type="password" aria-label="Old password" placeholder="Old password" autocomplete="current-password" value={old} onInput={(e) => setOld(e.currentTarget.value)} />
          <input class="txt" type="password" aria-label="New password, ten characters or more" placeholder="New password" autocomplete="new-password" value={next} onInput={(e) => setNext(e.currentTarget.value)} />
          <Act run={change} disabled={!old || next.length < 10}>Change password</Act>
        </div>
      )}
    </Panel>
  );
}
