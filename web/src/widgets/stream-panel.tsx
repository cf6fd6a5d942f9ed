import { useMemo, useState } from "preact/hooks";
import { sumBy } from "../model/cube";
import { count } from "../model/format";
import { useCube, useModel, useNav, useSettled } from "../model/hooks";
import { Seg, Swatch } from "./basics";
import { StreamTable } from "./stream-table";
import { TaskStream } from "./task-stream";

const SHOWN = 7;

/** The task stream with its legend and foot, and the same tasks as a table. */
export function StreamPanel({ maxHeight, page = false }: { maxHeight: number; page?: boolean }) {
  const model = useModel();
  const { params } = useNav();
  const selection = useSettled();
  const { report, nav } = model;
  const [focus, setFocus] = useState(-1);
  const [table, setTable] = useState(false);
  const [tall, setTall] = useState<"fit" | "tall">("fit");
  const cube = useCube("counts");
  const here = useMemo(() => {
    if (!cube) return report.prefixes.map((_, i) => i);
    const counts = sumBy(cube, "prefix", "count", selection);
    const by = new Map(cube.keys.prefix.map((name, i) => [name, counts[i]]));
    return report.prefixes.flatMap((p, i) => ((by.get(p.prefix) ?? 0) > 0 ? [i] : []));
  }, [cube, selection.b0, selection.b1]);
  const open = (task: number) => {
    if (page) nav.set({ item: String(task) });
    else nav.go("stream", { item: String(task) });
  };
  const most = innerWidth < 900 ? 4 : SHOWN;
  const { stream } = report;
  const away = report.prefixes.length - here.length;
  const more = here.length - Math.min(here.length, most);
  return (
    <section class="panel streampanel" aria-label="Task stream">
      <div class="phead">
        <h2>Task stream</h2>
        <ul class="keylist">
          {here.slice(0, most).map((rank) => (
            <li key={rank}>
              <button type="button" aria-pressed={focus === rank} title={`${report.prefixes[rank].prefix}: click to fade the others`} disabled={rank > 11} onClick={() => setFocus(focus === rank ? -1 : rank)}>
                <Swatch colour={model.colour(report.prefixes[rank].prefix)} />
                <span class="mono">{report.prefixes[rank].prefix}</span>
              </button>
            </li>
          ))}
          {more > 0 && <li class="faint">{count(more)} more</li>}
          {away > 0 && <li class="faint">{count(away)} outside the selection</li>}
        </ul>
        {page && (
          <div class="right hide-n">
            <Seg label="Height of lanes" options={[["fit", "All threads"], ["tall", "Full height"]]} value={tall} onChange={setTall} />
          </div>
        )}
      </div>
      {stream.bars === 0 ? <p class="callout">No task ran while this was recorded.</p> : <TaskStream maxHeight={maxHeight} tall={tall === "tall"} focus={focus} onTask={open} selected={page && /^\d+$/.test(params.item ?? "") ? Number(params.item) : -1} />}
      <div class="pfoot">
        <span>
          {count(stream.tasks)} of {count(stream.of)} tasks have a bar
        </span>
        <span>1 lane is 1 thread</span>
        <span class="hide-n">full height: running; half height: moving data</span>
        <span class="hide-n">ink: failed or lost; hatched: no worker</span>
        <button type="button" class="link push" onClick={() => setTable(!table)} data-testid="stream-as-table">
          {table ? "Hide table" : "View as table"}
        </button>
      </div>
      {stream.tasks < stream.of && <div class="pfoot warn">{count(stream.of - stream.tasks)} tasks have no bar here; totals and sums include them.</div>}
      {table && <StreamTable onTask={open} />}
    </section>
  );
}
