import type { AccountPreferences, HostedReport } from "../api/server.gen";
import { copy } from "../widgets/clipboard";
import { Icon } from "../widgets/icon";
import { toast } from "../widgets/toast";
import { useTeam } from "./context";
import { EditDialog } from "./edit-dialog";
import { Loaded } from "./loaded";
import { useResource } from "./resources";

/** A button that makes a report of a computation after asking who can see it, and copies its link. */
export function ShareComputation({ path }: { path: string }) {
  const { api } = useTeam();
  const share = async ({ visibility }: Record<string, string>) => {
    const report = await api.send<HostedReport>("POST", `${path}/share`, { visibility });
    copy(report.url, "Link copied");
    toast("Report added to Reports");
  };
  return (
    <EditDialog
      title="Share report"
      button={
        <>
          <Icon name="share" />
          Share report
        </>
      }
      label="Share report"
      submit="Share"
      save={share}
      testid="share"
    >
      <Audience />
    </EditDialog>
  );
}

/** Who can see the report; the account's preference comes first. */
function Audience() {
  const { api, account } = useTeam();
  const preferences = useResource<AccountPreferences>(() => api.get("preferences"), [account]);
  return (
    <Loaded from={preferences} lines={2}>
      {(p) => (
        <fieldset class="choices">
          <legend>Who can see it?</legend>
          <label class="check">
            <input type="radio" name="visibility" value="private" defaultChecked={p.visibility === "private"} /> Members
            of {account}
          </label>
          <label class="check">
            <input type="radio" name="visibility" value="public" defaultChecked={p.visibility === "public"} /> Anyone
            with the link
          </label>
          <small class="faint">
            The report contains code and error messages. It stays when the cluster is deleted.
          </small>
        </fieldset>
      )}
    </Loaded>
  );
}
