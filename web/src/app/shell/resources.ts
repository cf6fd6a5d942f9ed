import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { ApiError, type Page } from "../../api/server";
import { useTeam } from "./context";

export interface Resource<T> {
  value: T | null;
  error: ApiError | null;
  loading: boolean;
  /** When the value arrived, in ms since 1970; 0 before that. */
  at: number;
  reload: () => void;
}

/** Load a value from the server. The old value stays until the new one arrives. */
export function useResource<T>(load: () => Promise<T>, deps: readonly unknown[]): Resource<T> {
  const [state, set] = useState<{ value: T | null; error: ApiError | null; loading: boolean; at: number }>({
    value: null,
    error: null,
    loading: true,
    at: 0,
  });
  const [version, restart] = useReducer((n: number) => n + 1, 0);
  const latest = useRef(0);
  useEffect(() => {
    const request = ++latest.current;
    set((now) => ({ ...now, loading: true }));
    load().then(
      (value) => request === latest.current && set({ value, error: null, loading: false, at: Date.now() }),
      (error: unknown) =>
        request === latest.current &&
        set((now) => ({
          ...now,
          loading: false,
          error: error instanceof ApiError ? error : new ApiError(0, "failed", String(error)),
        })),
    );
  }, [...deps, version]);
  return { ...state, reload: () => restart(0) };
}

/** Like useResource, and reload when the cluster changes, at most once per `every` ms. */
export function useLive<T>(
  cluster: string | null,
  load: () => Promise<T>,
  deps: readonly unknown[],
  every = 1500,
): Resource<T> {
  const resource = useResource(load, deps);
  const { onChange } = useTeam();
  const reload = useRef(resource.reload);
  reload.current = resource.reload;
  useEffect(() => {
    let timer = 0;
    let last = 0;
    const stop = onChange(cluster, () => {
      if (timer) return;
      timer = window.setTimeout(
        () => {
          timer = 0;
          last = Date.now();
          reload.current();
        },
        Math.max(0, last + every - Date.now()),
      );
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [cluster, onChange]);
  return resource;
}

export interface Pages<T, P> {
  items: T[];
  /** All loaded pages; the first page is the latest version of it. */
  pages: P[];
  more: boolean;
  load: () => Promise<void>;
  /** Replace an item of any page, or remove it (null). */
  amend: (id: string, item: T | null) => void;
}

/** A list loaded page by page. The first page stays up to date; items that it pushes out stay in the list once more pages are loaded. */
export function usePages<T, P extends Page<T>>(
  first: Resource<P>,
  ask: (cursor: string) => Promise<P>,
  name: (item: T) => string,
  deps: readonly unknown[],
): Pages<T, P> {
  const [rest, setRest] = useState<{ items: T[]; pages: P[]; next: string | null } | null>(null);
  const list = useRef(0);
  useEffect(() => {
    list.current++;
    setRest(null);
  }, deps);
  const items = useMemo(() => {
    const fresh = new Set(first.value?.items.map(name));
    const seen = new Set<string>();
    const others = rest?.items.filter(
      (item) => !fresh.has(name(item)) && !seen.has(name(item)) && seen.add(name(item)),
    );
    return [...(first.value?.items ?? []), ...(others ?? [])];
  }, [first.value, rest]);
  const next = rest ? rest.next : (first.value?.next ?? null);
  const load = async () => {
    const request = list.current;
    const page = await ask(next ?? "");
    if (request === list.current)
      setRest({ items: [...items, ...page.items], pages: [...(rest?.pages ?? []), page], next: page.next });
  };
  const amend = (id: string, item: T | null) => {
    setRest(
      (now) => now && { ...now, items: now.items.flatMap((old) => (name(old) !== id ? [old] : item ? [item] : [])) },
    );
    first.reload();
  };
  return {
    items,
    amend,
    pages: [...(first.value ? [first.value] : []), ...(rest?.pages ?? [])],
    more: next !== null,
    load,
  };
}
