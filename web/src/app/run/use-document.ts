import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { HttpSource, limitedReload, loadReport } from "../../api/source";
import { StreamClient, warmUp } from "../../charts/stream/client";
import { Model, type PrefixOrder } from "../../model/model";

type ViewerModule = typeof import("../../viewer/viewer");

export interface LoadedDocument {
  model: Model;
  /** The views, whose code is loaded with the first document: other pages do not need it. */
  code: ViewerModule;
  /** When the server made it, and whether the run went on after that. */
  made: string;
  incomplete: boolean;
}

export interface DocumentState {
  loaded: LoadedDocument | null;
  problem: string;
  reload: () => void;
}

interface Options {
  /** Empty while the document is not wanted. */
  address: string;
  live: boolean;
  order?: PrefixOrder;
}

/** Load the document of a run, and again on request. The state of its views is in the hash of the URL. */
export function useDocument({ address, live, order }: Options): DocumentState {
  const [loaded, set] = useState<LoadedDocument | null>(null);
  const [problem, setProblem] = useState("");
  const [version, restart] = useReducer((n: number) => n + 1, 0);
  const reload = useMemo(() => limitedReload(() => restart(0)), [address]);
  const runs = useRef(live);
  runs.current = live;
  useEffect(() => {
    let shown: Model | null = null;
    let closed = false;
    set(null);
    setProblem("");
    if (!address) return;
    const incomplete = runs.current;
    warmUp();
    const source = new HttpSource(address, () => !closed && reload());
    Promise.all([loadReport(source), import("../../viewer/viewer")]).then(
      ([report, code]) => {
        if (closed) return;
        const model = new Model(report, source, new StreamClient(source, report), true, order);
        shown = model;
        set({ model, code, made: source.created || new Date().toISOString(), incomplete });
      },
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      closed = true;
      shown?.nav.close();
    };
  }, [address, version]);
  return { loaded, problem, reload: () => restart(0) };
}
