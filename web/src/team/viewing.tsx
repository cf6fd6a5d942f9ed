import { useEffect, useState } from "preact/hooks";
import { HttpSource, loadReport } from "../api/source";
import { Viewer } from "../app";
import { warmUp } from "../charts/stream/client";
import { Model } from "../model/model";
import { Loading, Panel } from "../widgets/basics";
import { Failed } from "../widgets/basics";

/** The viewer on a report the server has. */
export function Viewing({ prefix }: { prefix: string }) {
  const [model, set] = useState<Model | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let alive: Model | null = null;
    let gone = false;
    set(null);
    setProblem("");
    warmUp();
    const source = new HttpSource(prefix);
    loadReport(source).then(
      (report) => {
        if (gone) return;
        alive = new Model(report, source);
        set(alive);
      },
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      gone = true;
      alive?.nav.close();
    };
  }, [prefix]);
  if (problem) return <main class="wide"><Panel><Failed message={problem} /></Panel></main>;
  if (!model) return <main class="wide"><Panel title="Loading"><Loading lines={8} /></Panel></main>;
  return <Viewer model={model} key={prefix} />;
}
