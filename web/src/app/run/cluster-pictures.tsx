import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { OneCluster } from "../../api/server.gen";
import { HttpSource, limitedReload, loadReport } from "../../api/source";
import { StreamClient } from "../../charts/stream/client";
import { activeTime } from "../../model/active-time";
import { Model } from "../../model/model";
import { ModelContext } from "../../model/page/hooks";
import { counted } from "../../model/text/format";
import { type Selection, select } from "../../model/time";
import { Panel } from "../../widgets/basics";
import { StreamPanel } from "../../widgets/stream/stream-panel";
import { TimeRuler } from "../../widgets/stream/time-ruler";
import { useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { type Resource, useLive } from "../shell/resources";
import { ClusterCharts } from "./cluster-charts";

/** Runs with more tasks load their charts on request: a document of a million tasks takes the server seconds. */
const MAX_TASKS = 200_000;

/** A live document is made again at most this often, in ms. */
const REFRESH_MS = 20_000;

interface Pictures {
  model: Model;
  stream: StreamClient;
  /** The time that is selected until the reader selects another. */
  active: Selection;
}

/** Activity, task stream, memory, CPU and network of a cluster, fitted to its active time. */
export function ClusterPictures({ c }: { c: OneCluster }) {
  const [asked, ask] = useState(false);
  if (c.n_tasks === 0) return null;
  if (c.n_tasks > MAX_TASKS && !asked)
    return (
      <Panel title="Activity" testid="pictures">
        <p class="callout">
          Charts of {counted(c.n_tasks, "task")} take a few seconds to load.{" "}
          <button type="button" class="link" onClick={() => ask(true)}>
            Show charts
          </button>
        </p>
      </Panel>
    );
  return <LoadedPictures id={c.id} />;
}

function LoadedPictures({ id }: { id: string }) {
  const { api, account, router } = useTeam();
  const shown = useRef<Pictures | null>(null);
  const reload = useMemo(() => limitedReload(() => pictures.reload()), [id, account]);
  const pictures: Resource<Pictures> = useLive(
    id,
    () => loadPictures(api.url(`clusters/${encodeURIComponent(id)}/document`), shown.current, reload),
    [id, account],
    REFRESH_MS,
  );
  const { value } = pictures;
  useEffect(() => {
    shown.current = value;
    return () => value?.stream.close();
  }, [value]);
  if (!value)
    return (
      <Panel title="Activity" testid="pictures">
        <Loaded from={pictures} lines={9}>
          {() => null}
        </Loaded>
      </Panel>
    );
  const report = router.href([account, "clusters", id, "report"]);
  return (
    <ModelContext.Provider value={value.model}>
      <div class="pictures" data-testid="pictures">
        <TimeRuler joined />
        <StreamPanel maxHeight={190} onTask={(task) => router.go(`${report}#stream?item=${task}`)} />
      </div>
      <ClusterCharts />
    </ModelContext.Provider>
  );
}

/** Load the document. Keep the reader's selection; otherwise select the active time. */
async function loadPictures(address: string, before: Pictures | null, reload: () => boolean): Promise<Pictures> {
  const source = new HttpSource(address, reload);
  const report = await loadReport(source);
  const stream = new StreamClient(source, report);
  const model = new Model(report, source, stream, false);
  const active = activeTime(await model.cube("time_by_prefix"), model.axis);
  const now = before?.model.nav.state.selection;
  model.nav.select(now && now !== before.active ? select(model.axis, now.t0, now.t1) : active);
  return { model, stream, active };
}
