import { useAsync, useModel } from "../model/hooks";

const MAX_LINKS = 12;

export function TaskLinks({ title, tasks }: { title: string; tasks: number[] | undefined }) {
  const model = useModel();
  const shown = tasks?.slice(0, MAX_LINKS) ?? [];
  const named = useAsync(() => Promise.all(shown.map((t) => model.stream.detail(t))), [tasks]);
  if (!tasks) return null;
  return (
    <>
      <h3>
        {title} {tasks.length > MAX_LINKS ? `${MAX_LINKS} of ${tasks.length}` : tasks.length === 0 ? "(none)" : ""}
      </h3>
      {shown.length > 0 && (
        <ul class="deps">
          {shown.map((t, i) => (
            <li key={t}>
              <button
                type="button"
                class="link mono"
                title={named.value?.[i]?.key}
                onClick={() => model.nav.set({ item: String(t) })}
              >
                {named.value?.[i]?.key || `task ${t + 1}`}
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
