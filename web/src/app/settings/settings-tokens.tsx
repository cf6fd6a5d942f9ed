import { useState } from "preact/hooks";
import { TOKEN_DAYS } from "../../api/limits.gen";
import type { Token } from "../../api/server.gen";
import { counted } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { copy } from "../../widgets/clipboard";
import { Pick } from "../../widgets/controls/inputs";
import { ShortTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
import { Ago } from "../parts/time-text";
import { useCan, useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";

const SCOPES = [
  ["ingest,read,write", "record, read and write"],
  ["ingest", "record only"],
  ["read", "read only"],
] as const;

const TOKENS = ["ingest,read,write,tokens", "record, read, write and create tokens"] as const;
const ADMIN = ["ingest,read,write,admin", "everything but creating tokens"] as const;

const EXPIRY = [
  [String(TOKEN_DAYS), `in ${TOKEN_DAYS} days`],
  ["30", "in 30 days"],
  ["365", "in a year"],
  ["0", "never"],
] as const;

/** What else ends with a token. */
function consequences(t: Token): string {
  const others = t.children > 0 ? `, as do ${counted(t.children, "token")} created with it` : "";
  const clusters = t.recorders > 0 ? `, and ${counted(t.recorders, "cluster")} can no longer send data` : "";
  return `Programs that use it lose access${others}${clusters}.`;
}

export function Tokens() {
  const { api, account } = useTeam();
  const canCreate = useCan("tokens");
  const canAdmin = useCan("admin");
  const tokens = useResource<{ items: Token[] }>(() => api.get("tokens"), [account]);
  const [label, setLabel] = useState("");
  const [scopes, setScopes] = useState<string>(SCOPES[0][0]);
  const [days, setDays] = useState<string>(EXPIRY[0][0]);
  const [secret, setSecret] = useState("");
  const make = async () => {
    const made = await api.send<{ token: string }>("POST", "tokens", {
      label,
      scopes: scopes.split(","),
      days_to_expire: Number(days),
    });
    setSecret(made.token);
    setLabel("");
    tokens.reload();
  };
  const revoke = async (t: Token) => {
    if (confirm(`Revoke ${t.label || t.hint}? ${consequences(t)}`))
      await api.send("DELETE", `tokens/${t.id}`).then(tokens.reload);
  };
  return (
    <Panel title="Your tokens" class="mt" testid="tokens">
      <Loaded from={tokens}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="callout">No tokens yet. Create one here, or sign in on the command line with daskscope login.</p>
          ) : (
            <ShortTable
              label="Tokens"
              rows={items}
              keyOf={(t) => t.id}
              testid="token-row"
              columns={[
                ["Token", (t) => `${t.hint}…`, "mono"],
                [
                  "Label",
                  (t) => (
                    <>
                      <span class="cut">{t.label}</span>
                      {t.recorders > 0 && <span class="sub">{counted(t.recorders, "recorder")}</span>}
                    </>
                  ),
                ],
                ["Scopes", (t) => t.scopes.join(", "), "wrap"],
                ["Last used", (t) => <Ago at={t.used} never="never" />, "num"],
                [
                  "Expires",
                  (t) => (
                    <>
                      {t.expires ? t.expires.slice(0, 10) : "never"}
                      {t.expires_soon && <span class="bad"> soon</span>}
                    </>
                  ),
                  "num",
                ],
                [
                  "",
                  (t) => (
                    <ActionButton class="sm" run={() => revoke(t)}>
                      Revoke
                    </ActionButton>
                  ),
                  "acts",
                ],
              ]}
            />
          )
        }
      </Loaded>
      {secret && (
        <div class="callout">
          Copy the token now. It is not shown again: <code data-testid="token-secret">{secret}</code>{" "}
          <button type="button" class="btn sm" onClick={() => copy(secret, "Token copied")}>
            Copy
          </button>{" "}
          Programs read it from <code>DASKSCOPE_TOKEN</code>. On the command line run{" "}
          <code>
            daskscope login --server {location.origin}
            {api.root} --token …
          </code>
        </div>
      )}
      {canCreate && (
        <div class="filters">
          <input
            class="txt"
            aria-label="Label"
            placeholder="Label"
            value={label}
            onInput={(e) => setLabel(e.currentTarget.value)}
            data-testid="token-label"
          />
          <Pick
            label="Scopes"
            options={canAdmin ? [...SCOPES, TOKENS, ADMIN] : [...SCOPES, TOKENS]}
            value={scopes}
            onChange={setScopes}
            testid="token-scopes"
          />
          <Pick label="Expires" options={EXPIRY} value={days} onChange={setDays} testid="token-days" />
          <ActionButton run={make} testid="make-token">
            Create token
          </ActionButton>
        </div>
      )}
    </Panel>
  );
}
