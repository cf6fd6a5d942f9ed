import { createContext } from "preact";
import { useContext, useEffect, useMemo, useReducer, useState } from "preact/hooks";
import type { Category } from "../../api/schema.gen";
import type { CubeData } from "../cube";
import type { CubeName, Model } from "../model";
import type { Selection } from "../time";
import { FILTERED_BY_ACTIVITY, type Params, type State, type View } from "./nav";

export const ModelContext = createContext<Model | null>(null);

export function useModel(): Model {
  const model = useContext(ModelContext);
  if (!model) throw new Error("useModel needs a ModelContext");
  return model;
}

/** Return the state of the page and re-render when it changes. */
export function useNav(): State {
  const { nav } = useModel();
  const [, rerender] = useReducer((n: number) => n + 1, 0);
  useEffect(() => nav.subscribe(() => rerender(0)), [nav]);
  return nav.state;
}

/** Return the current view. Re-renders only when the view changes, not with the selection. */
export function useView(): View {
  const { nav } = useModel();
  const [view, set] = useState(nav.state.view);
  useEffect(() => nav.subscribe(() => set(nav.state.view)), [nav]);
  return view;
}

/** Return the activity filter if the view supports it. */
export function useActivity(): Category | null {
  const { activity, view } = useNav();
  return FILTERED_BY_ACTIVITY.includes(view) ? activity : null;
}

export function useSelection(): Selection {
  return useNav().selection;
}

/** Return the selection once it has not changed for 90 ms: for sums and tables, which are too slow to follow a drag. */
export function useSettledSelection(): Selection {
  const now = useSelection();
  const [settled, set] = useState(now);
  useEffect(() => {
    if (now === settled) return;
    const timer = setTimeout(() => set(now), 90);
    return () => clearTimeout(timer);
  }, [now]);
  return settled;
}

/** Return the middle of each selected bin, in microseconds since the start: the x axis of plots. */
export function useBinCenters(): Float64Array {
  const { axis } = useModel();
  const { b0, b1 } = useSettledSelection();
  return useMemo(() => Float64Array.from({ length: b1 - b0 }, (_, i) => (b0 + i + 0.5) * axis.width), [b0, b1]);
}

/** Stores filters and settings of a view in the URL. */
export interface ParamStore {
  readonly params: Params;
  set(params: Readonly<Record<string, string | undefined>>): void;
  subscribe(listener: () => void): () => void;
}

export const ParamContext = createContext<ParamStore | null>(null);

/** Return a parameter of the URL and a function that sets it. */
export function useParam(name: string, otherwise = ""): [string, (value: string) => void] {
  const store = useContext(ParamContext);
  if (!store) throw new Error("useParam needs a ParamContext");
  const [, rerender] = useReducer((n: number) => n + 1, 0);
  useEffect(() => store.subscribe(() => rerender(0)), [store]);
  return [store.params[name] ?? otherwise, (next) => store.set({ [name]: next === otherwise ? undefined : next })];
}

export type Loaded<T> = { value: T; error: null } | { value: null; error: string | null };

/** Return the value of a promise. The old value stays until the new one arrives. */
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

/** Return a value computed from a cube; null until the cube is loaded. */
export function useFromCube<T>(name: CubeName, compute: (cube: CubeData) => T, deps: readonly unknown[]): T | null {
  const cube = useCube(name);
  return useMemo(() => (cube ? compute(cube) : null), [cube, ...deps]);
}
