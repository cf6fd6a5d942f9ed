import type { BrowserSession } from "../../api/server.gen";
import { Panel } from "../../widgets/basics";
import { ShortTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
import { Ago } from "../parts/time-text";
import { useCan, useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { SignInOff, YourAccount } from "./settings-account";
import { AuditLog } from "./settings-audit";
import { Members } from "./settings-members";
import { Preferences } from "./settings-preferences";
import { Tokens } from "./settings-tokens";
import { Users } from "./settings-users";

/** Members, tokens, sessions, prices and retention; users and the audit log. Viewers see them without buttons. */
export function Settings() {
  const { me, account } = useTeam();
  const canAdmin = useCan("admin");
  return (
    <main class="wide" data-testid="page-settings">
      <div class="viewhead">
        <h1>Settings</h1>
        <span class="note">
          {account}, your role: {me.accounts.find((a) => a.name === account)?.role ?? "only user"}
        </span>
      </div>
      {me.warnings.map((warning) => (
        <p class="inline-err" role="alert" key={warning} data-testid="server-warning">
          {warning}
        </p>
      ))}
      <div class="cols">
        <div class="c6">
          {me.kind !== "local" && <Members />}
          <Preferences />
        </div>
        <div class="c6">
          {me.kind === "local" ? (
            <SignInOff />
          ) : (
            <>
              <YourAccount />
              <Tokens />
              {me.kind === "session" && <Sessions />}
            </>
          )}
        </div>
        {(canAdmin || (me.admin && me.kind !== "local")) && (
          <div class="c12">
            {me.admin && me.kind !== "local" && <Users />}
            {canAdmin && <AuditLog />}
          </div>
        )}
      </div>
    </main>
  );
}

/** The browsers in which the user is signed in. */
function Sessions() {
  const { api } = useTeam();
  const sessions = useResource<{ items: BrowserSession[] }>(() => api.get("me/sessions"), []);
  return (
    <Panel title="Your sessions" note="Browsers in which you are signed in" class="mt" testid="sessions">
      <Loaded from={sessions}>
        {({ items }) => (
          <ShortTable
            label="Sessions"
            rows={items}
            keyOf={(s) => s.id}
            testid="session-row"
            columns={[
              [
                "Browser",
                (s) => (
                  <span class="cut" title={s.agent}>
                    {s.agent || "unknown"}
                  </span>
                ),
              ],
              ["Address", (s) => s.address, "mono"],
              ["Signed in", (s) => <Ago at={s.created} now="just now" />, "num"],
              [
                "",
                (s) =>
                  s.current ? (
                    "this one"
                  ) : (
                    <ActionButton
                      class="sm"
                      run={() => api.send("DELETE", `me/sessions/${s.id}`).then(sessions.reload)}
                    >
                      End
                    </ActionButton>
                  ),
                "acts",
              ],
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}
