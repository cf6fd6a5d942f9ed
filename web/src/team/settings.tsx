import { useCan, useTeam } from "./context";
import { SignInOff, YourAccount } from "./settings-account";
import { AuditLog } from "./settings-audit";
import { Members } from "./settings-members";
import { Preferences } from "./settings-preferences";
import { Sessions } from "./settings-sessions";
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
