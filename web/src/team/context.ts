import { createContext } from "preact";
import { useContext, useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { type Api, ApiError, type Page } from "../api/server";
import type { Me, Scope } from "../api/server.gen";
import type { Router } from "../model/router";

/** What every page of the app has: who is asking, in which account, and how to get somewhere. */
export interface Team {
  api: Api;
  me: Me;
  router: Router;
  account: string;
  /** Calls back when one of the clusters changes; null: any. */
  onChange: (cluster: string | null, listener: () => void) => () => void;
}

export const TeamContext = createContext<Team | null>(null);

export function useTeam(): Team {
  const team = useContext(TeamContext);
  if (!team) throw new Error("There is no team");
  return team;
}

export function useRouter(router: Router): Router {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => router.subscribe(() => again(0)), [router]);
  return router;
}

export function useMay(scope: Scope): boolean {
  return useTeam().me.scopes.includes(scope);
}

export interface Resource<T> {
  value: T | null;
  error: ApiError | null;
  loading: boolean;
  /** When the value came; 0 before. */
  at: number;
  reload: () => void;
}

/** Something the server has; what was there stays until the new is. */
export function useResource<T>(load: () => Promise<T>, deps: readonly unknown[]): Resource<T> {
  const [state, set] = useState<{ value: T | null; error: ApiError | null; loading: boolean; at: number }>({ value: null, error: null, loading: true, at: 0 });
  const [turn, again] = useReducer((n: number) => n + 1, 0);
  const wanted = useRef(0);
  useEffect(() => {
    const mine = ++wanted.current;
    set((now) => ({ ...now, loading: true }));
    load().then(
      (value) => mine === wanted.current && set({ value, error: null, loading: false, at: Date.now() }),
      (error: unknown) => mine === wanted.current && set((now) => ({ ...now, loading: false, error: error instanceof ApiError ? error : new ApiError(0, "failed", String(error)) })),
    );
  }, [...deps, turn]);
  return { ...state, reload: () => again(0) };
}

/** The same, asked again whenever a cluster changes, at most once in a while. */
export function useLive<T>(cluster: string | null, load: () => Promise<T>, deps: readonly unknown[], every = 1500): Resource<T> {
  const resource = useResource(load, deps);
  const { onChange } = useTeam();
  const reload = useRef(resource.reload);
  reload.current = resource.reload;
  useEffect(() => {
    let timer = 0;
    let last = 0;
    const stop = onChange(cluster, () => {
      if (timer) return;
      timer = window.setTimeout(() => {
        timer = 0;
        last = Date.now();
        reload.current();
      }, Math.max(0, last + every - Date.now()));
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
  /** The pages that came, the newest version of the first one first. */
  pages: P[];
  more: boolean;
  load: () => Promise<void>;
  /** Something of the list is another, or gone (null): wherever it stands. */
  amend: (id: string, item: T | null) => void;
}

/** A list that comes in pages, of which the first is kept up to date: what it pushes out stays on the list once more was loaded. */
export function usePages<T, P extends Page<T>>(first: Resource<P>, ask: (cursor: string) => Promise<P>, name: (item: T) => string, deps: readonly unknown[]): Pages<T, P> {
  const [rest, setRest] = useState<{ items: T[]; pages: P[]; next: string | null } | null>(null);
  const list = useRef(0);
  useEffect(() => {
    list.current++;
    setRest(null);
  }, deps);
  const items = useMemo(() => {
    const fresh = new Set(first.value?.items.map(name));
    const seen = new Set<string>();
    const others = rest?.items.filter((item) => !fresh.has(name(item)) && !seen.has(name(item)) && seen.add(name(item)));
    return [...(first.value?.items ?? []), ...(others ?? [])];
  }, [first.value, rest]);
  const next = rest ? rest.next : first.value?.next ?? null;
  const load = async () => {
    const mine = list.current;
    const page = await ask(next ?? "");
    if (mine === list.current) setRest({ items: [...items, ...page.items], pages: [...(rest?.pages ?? []), page], next: page.next });
  };
  const amend = (id: string, item: T | null) => {
    setRest((now) => now && { ...now, items: now.items.flatMap((old) => (name(old) !== id ? [old] : item ? [item] : [])) });
    first.reload();
  };
  return { items, amend, pages: [...(first.value ? [first.value] : []), ...(rest?.pages ?? [])], more: next !== null, load };
}

/** What is typed, once it rests: for what the server is asked. */
export function useSettledText(text: string): string {
  const [settled, set] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => set(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** The name of what a page shows, in the title of the window; the section's comes back afterwards. */
export function useTitle(name: string | undefined): void {
  const { account } = useTeam();
  useEffect(() => {
    if (!name) return;
    const before = document.title;
    document.title = `${name} · ${account} · daskscope`;
    return () => {
      document.title = before;
    };
  }, [name, account]);
}

/** The time, again every half minute: for "2 min ago". */
export function useNow(every = 30_000): number {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
