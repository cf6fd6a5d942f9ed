import type { BrowserSession } from "../api/server.gen";
import { Panel } from "../widgets/basics";
import { ActionButton } from "./action-button";
import { useTeam } from "./context";
import { Loaded } from "./loaded";
import { useResource } from "./resources";
import { ScrollRegion } from "./scroll-region";
import { Ago } from "./time-text";

/** The browsers in which the user is signed in. */
export function Sessions() {
  const { api } = useTeam();
  const sessions = useResource<{ items: BrowserSession[] }>(() => api.get("me/sessions"), []);
  return (
    <Panel title="Your sessions" note="Browsers in which you are signed in" class="mt" testid="sessions">
      <Loaded from={sessions}>
        {({ items }) => (
          <ScrollRegion label="Sessions">
            <table class="data">
              <thead>
                <tr>
                  <th>Browser</th>
                  <th>Address</th>
                  <th class="num">Signed in</th>
                  <th />
                </tr>
              </thead>
              <tbody>
                {items.map((s) => (
                  <tr key={s.id} data-testid="session-row">
                    <td>
                      <span class="cut" title={s.agent}>
                        {s.agent || "unknown"}
                      </span>
                    </td>
                    <td class="mono">{s.address}</td>
                    <td class="num">
                      <Ago at={s.created} now="just now" />
                    </td>
                    <td class="acts">
                      {s.current ? (
                        "this one"
                      ) : (
                        <ActionButton
                          class="sm"
                          run={() => api.send("DELETE", `me/sessions/${s.id}`).then(sessions.reload)}
                        >
                          End
                        </ActionButton>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </ScrollRegion>
        )}
      </Loaded>
    </Panel>
  );
}
