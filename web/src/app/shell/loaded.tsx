import type { ComponentChildren } from "preact";
import type { ApiError } from "../../api/server";
import { Empty, Loading, Panel } from "../../widgets/basics";
import { Icon } from "../../widgets/icon";
import { Ago } from "../parts/time-text";
import { useTeam } from "./context";
import { Link } from "./link";
import type { Resource } from "./resources";

/** Loading bars, an error with a retry button, or the content. Old content stays while new content loads. */
export function Loaded<T>({
  from,
  lines = 4,
  children,
}: {
  from: Resource<T>;
  lines?: number;
  children: (value: T) => ComponentChildren;
}) {
  return (
    <>
      {from.error?.status === 404 && !from.value ? (
        <Missing message={from.error.message} />
      ) : (
        from.error && <LoadError error={from.error} at={from.value ? from.at : 0} retry={from.reload} />
      )}
      {from.value ? children(from.value) : !from.error && <Loading lines={lines} />}
    </>
  );
}

/** Something that does not exist, with ways on. The message is a title and a sentence. */
export function Missing({ message }: { message: string }) {
  const { account } = useTeam();
  const [title, ...text] = message.split(". ");
  return (
    <Panel testid="missing">
      <Empty title={title}>
        {text.join(". ")} Go to <Link to={[account, "runs"]}>Runs</Link> or <Link to={[account]}>Home</Link>, or press{" "}
        <kbd>/</kbd> to search.
      </Empty>
    </Panel>
  );
}

export function LoadError({ error, at, retry }: { error: ApiError; at: number; retry: () => void }) {
  return (
    <div class={at > 0 ? "inline-err outdated" : "inline-err"} role="alert" style="margin:12px 16px">
      <Icon name="errors" />
      <span>
        {error.message}
        {at > 0 && (
          <>
            {" "}
            Showing data from{" "}
            {new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false })} (
            <Ago at={new Date(at).toISOString()} />
            ).
          </>
        )}
      </span>
      <button type="button" class="btn sm" onClick={retry}>
        Retry
      </button>
    </div>
  );
}
