import { createContext } from "preact";
import { useContext, useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
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
  return useStored(nav, () => nav.state);
}

/** Return a value of a store. Re-renders only when the value changes: the selection of a run that goes on moves 20 times a second. */
function useStored<T extends string | State | null | undefined>(
  store: { subscribe(listener: () => void): () => void },
  read: () => T,
): T {
  const latest = useRef({ read, value: read() });
  latest.current = { read, value: read() };
  const [, rerender] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const update = () => {
      if (latest.current.read() !== latest.current.value) rerender(0);
    };
    // Effects run after the paint: the value may have changed since.
    update();
    return store.subscribe(update);
  }, [store]);
  return latest.current.value;
}

/** Return the current view. Re-renders only when the view changes, not with the selection. */
export function useView(): View {
  const { nav } = useModel();
  return useStored(nav, () => nav.state.view);
}

/** Return the activity filter if the view supports it. */
export function useActivity(): Category | null {
  const { nav } = useModel();
  return useStored(nav, () => (FILTERED_BY_ACTIVITY.includes(nav.state.view) ? nav.state.activity : null));
}

export function useSelection(): Selection {
  return useNav().selection;
}

/** Return the selection. While it moves with a run that goes on, it changes with the model, which is once a second. */
export function useSteadySelection(delayMs = 0): Selection {
  const model = useModel();
  const { nav } = model;
  const [steady, set] = useState(nav.state.selection);
  useEffect(() => {
    let timer = 0;
    let wasNow = false;
    const update = () => {
      clearTimeout(timer);
      const next = nav.state.selection;
      if (next.isNow ? !wasNow : delayMs === 0) set(next);
      else if (!next.isNow) timer = window.setTimeout(() => set(next), delayMs);
      wasNow = next.isNow === true;
    };
    update();
    const stop = nav.subscribe(update);
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [model]);
  return steady;
}

/** Return the selection once it has not changed for 90 ms: for sums and tables, which are too slow to follow a drag. */
export function useSettledSelection(): Selection {
  return useSteadySelection(90);
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
  const value = useStored(store, () => store.params[name] ?? otherwise);
  return [value, (next) => store.set({ [name]: next === otherwise ? undefined : next })];
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
