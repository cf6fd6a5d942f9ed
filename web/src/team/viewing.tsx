import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { HttpSource, loadReport } from "../api/source";
import { Viewer } from "../app";
import { warmUp } from "../charts/stream/client";
import { Model } from "../model/model";
import { Failed, Loading, Panel } from "../widgets/basics";
import { Ago } from "./parts";

/** The viewer on a report the server has; of something that still runs it says how old it is, and is made again when asked. */
export function Viewing({ prefix, live = false }: { prefix: string; live?: boolean }) {
  const [model, set] = useState<Model | null>(null);
  const [turn, again] = useReducer((n: number) => n + 1, 0);
  const [made, setMade] = useState("");
  // Once it ran while this report was shown, the report is not of all of it.
  const ran = useRef(live);
  if (live) ran.current = true;
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let alive: Model | null = null;
    let gone = false;
    ran.current = live;
    set(null);
    setProblem("");
    warmUp();
    const source = new HttpSource(prefix);
    loadReport(source).then(
      (report) => {
        if (gone) return;
        alive = new Model(report, source);
        set(alive);
        setMade(new Date().toISOString());
      },
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      gone = true;
      alive?.nav.close();
    };
  }, [prefix, turn]);
  if (problem) return <main class="wide"><Panel><Failed message={problem} /></Panel></main>;
  if (!model) return <main class="wide"><Panel title="Loading"><Loading lines={8} /></Panel></main>;
  return (
    <>
      {ran.current && (
        <div class="asof" data-testid="as-of">
          <span>{live ? "It still runs" : "It has ended since"}; this report was made <Ago at={made} now="just now" />.</span> <button type="button" class="link" onClick={() => again(0)}>Make it again</button>
        </div>
      )}
      <Viewer model={model} key={`${prefix} ${turn}`} />
    </>
  );
}
