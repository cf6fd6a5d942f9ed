import type { OneCluster } from "../api/server.gen";
import { toast } from "../widgets/toast";
import { ActionButton } from "./action-button";
import { useCan, useTeam } from "./context";
import { EditDialog, parseTags } from "./edit-dialog";
import { Field } from "./field";
import { isLive } from "./pills";

/** Whether the user can change a cluster: the member who recorded it and owners can. */
function useCanChange(c: OneCluster): boolean {
  const { me } = useTeam();
  const canAdmin = useCan("admin");
  return useCan("write") && (canAdmin || c.user === me.user);
}

export function EditCluster({ cluster: c, done }: { cluster: OneCluster; done: () => void }) {
  const { api } = useTeam();
  const canChange = useCanChange(c);
  if (!canChange) return null;
  const save = ({ name, tags }: Record<string, string>) =>
    api.send("PATCH", `clusters/${encodeURIComponent(c.id)}`, { name, tags: parseTags(tags ?? "") }).then(done);
  return (
    <EditDialog title="Name and tags" button="Edit" label="Edit name and tags" save={save} testid="edit-cluster">
      <Field label="Name" name="name" value={c.name} optional />
      <Field
        label="Tags"
        name="tags"
        value={c.tags.join(", ")}
        hint="Separate tags with commas. Prices can depend on tags."
        optional
      />
    </EditDialog>
  );
}

export function CloseCluster({ cluster: c }: { cluster: OneCluster }) {
  const { api } = useTeam();
  const canChange = useCanChange(c);
  if (!canChange || !isLive(c)) return null;
  const run = async () => {
    if (!confirm(`Shut down ${c.name || c.id}? Its workers stop and results in memory are lost.`)) return;
    await api.send("POST", `clusters/${encodeURIComponent(c.id)}/close`);
    toast("Shutdown requested");
  };
  return (
    <ActionButton run={run} testid="close-cluster">
      Close cluster
    </ActionButton>
  );
}
