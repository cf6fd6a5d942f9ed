import { createContext } from "preact";
import { useContext, useEffect, useMemo, useReducer, useState } from "preact/hooks";
import type { Category } from "../api/schema.gen";
import type { CubeData } from "./cube";
import type { CubeName, Model } from "./model";
import { FOLLOWING, type Params, type State, type View } from "./nav";
import type { Selection } from "./time";

export const ModelContext = createContext<Model | null>(null);

export function useModel(): Model {
  const model = useContext(ModelContext);
  if (!model) throw new Error("There is no report");
  return model;
}

/** The state of the page; draws again when it changes. */
export function useNav(): State {
  const { nav } = useModel();
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => nav.subscribe(() => again(0)), [nav]);
  return nav.state;
}

/** The current view alone: the frame of the page does not change with the selection. */
export function useView(): View {
  const { nav } = useModel();
  const [view, set] = useState(nav.state.view);
  useEffect(() => nav.subscribe(() => set(nav.state.view)), [nav]);
  return view;
}

/** The activity that is looked at alone, where the view follows it. */
export function useActivity(): Category | null {
  const { activity, view } = useNav();
  return FOLLOWING.includes(view) ? activity : null;
}

export function useSelection(): Selection {
  return useNav().selection;
}

/** The selection once it rests: for sums and tables, which need not follow every step of a drag. */
export function useSettled(): Selection {
  const now = useSelection();
  const [settled, set] = useState(now);
  useEffect(() => {
    if (now === settled) return;
    const timer = setTimeout(() => set(now), 90);
    return () => clearTimeout(timer);
  }, [now]);
  return settled;
}

/** Where filters and switches live: the part of the address that belongs to what is shown. */
export interface ParamStore {
  readonly params: Params;
  set(params: Readonly<Record<string, string | undefined>>): void;
  subscribe(listener: () => void): () => void;
}

export const ParamContext = createContext<ParamStore | null>(null);

/** A filter or switch of what is shown, and how to set it. */
export function useParam(name: string, otherwise = ""): [string, (value: string) => void] {
  const store = useContext(ParamContext);
  if (!store) throw new Error("There is no address to keep a filter in");
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => store.subscribe(() => again(0)), [store]);
  return [store.params[name] ?? otherwise, (next) => store.set({ [name]: next === otherwise ? undefined : next })];
}

export type Loaded<T> = { value: T; error: null } | { value: null; error: string | null };

/** A promise's value; the old one stays until the new one is there. */
export function useAsync<T>(make: () => Promise<T>, deps: readonly unknown[]): Loaded<T> {
  const [state, set] = useState<Loaded<T>>({ value: null, error: null });
  useEffect(() => {
    let alive = true;
    make().then(
      (value) => alive && set({ value, error: null }),
      (error: unknown) => alive && set({ value: null, error: error instanceof Error ? error.message : String(error) }),
    );
    return () => {
      alive = false;
    };
  }, deps);
  return state;
}

export function useCube(name: CubeName): CubeData | null {
  const model = useModel();
  return useAsync(() => model.cube(name), [model, name]).value;
}

/** Something computed from a cube, null until it is loaded. */
export function useFromCube<T>(name: CubeName, compute: (cube: CubeData) => T, deps: readonly unknown[]): T | null {
  const cube = useCube(name);
  return useMemo(() => (cube ? compute(cube) : null), [cube, ...deps]);
}
