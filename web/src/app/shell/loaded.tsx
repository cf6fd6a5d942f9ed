import type { ComponentChildren } from "preact";
import type { ApiError } from "../../api/server";
import { Loading } from "../../widgets/basics";
import { Icon } from "../../widgets/icon";
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
      {from.error && <LoadError error={from.error} at={from.value ? from.at : 0} retry={from.reload} />}
      {from.value ? children(from.value) : !from.error && <Loading lines={lines} />}
    </>
  );
}

export function LoadError({ error, at, retry }: { error: ApiError; at: number; retry: () => void }) {
  return (
    <div class="inline-err" role="alert" style="margin:12px 16px">
      <Icon name="errors" />
      <span>
        {error.message}
        {at > 0 &&
          ` Showing data from ${new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false })}.`}
      </span>
      <button type="button" class="btn sm" onClick={retry}>
        Retry
      </button>
    </div>
  );
}
