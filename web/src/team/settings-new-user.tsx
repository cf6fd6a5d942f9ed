import { useState } from "preact/hooks";
import { toast } from "../widgets/toast";
import { ActionButton } from "./action-button";
import { useTeam } from "./context";

/** Create a user of the server. Only administrators can. */
export function NewUser({ created }: { created: () => void }) {
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
