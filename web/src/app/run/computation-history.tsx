import { useMemo } from "preact/hooks";
import type { ComputationHistory } from "../../api/server.gen";
import { useParam } from "../../model/page/hooks";
import { axisSteps, changesText, dateTicks, historyLabel, knownMeasures, runValue } from "../../model/run-measures";
import { Seg } from "../../widgets/controls/inputs";
import { RunPlot } from "../../widgets/plots/run-plot";
import { Ago, minute } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";

/** Finished runs of the same code as a chart, and when and why their duration changed. */
export function HistoryOfComputation({ cluster, id }: { cluster: string; id: string }) {
  const { api } = useTeam();
  const path = `clusters/${encodeURIComponent(cluster)}/computations/${encodeURIComponent(id)}/history`;
  const history = useResource<ComputationHistory>(() => api.get(path), [cluster, id]);
  return (
    <Loaded from={history} lines={4}>
      {(found) => (
        <div class="history" data-testid="history">
          {found.runs.length > 0 && <HistoryChart history={found} />}
          {found.changes.length === 0 ? (
            <p class="faint">{changesText(found)}</p>
          ) : (
            <ul>
              {found.changes.toReversed().map((change) => (
                <li key={change.at} data-testid="history-change">
                  <b>{change.sentence}</b> <Ago at={change.at} />
                  <ul>
                    {change.causes.map((cause) => (
                      <li key={cause}>{cause}</li>
                    ))}
                  </ul>
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </Loaded>
  );
}

function HistoryChart({ history }: { history: ComputationHistory }) {
  const { router, account } = useTeam();
  const [wanted, choose] = useParam("measure", "duration");
  const { runs, levels } = history;
  const measures = knownMeasures(runs);
  const [measure, name] = measures.find(([known]) => known === wanted) ?? measures[0];
  const values = useMemo(() => runs.map((run) => run[measure]), [runs, measure]);
  const marks = useMemo(() => levels.slice(1).map((level) => level.first), [levels]);
  const medians = useMemo(
    () => (measure === "duration" && runs.length > 1 ? levels.map((level) => level.duration) : []),
    [levels, measure],
  );
  return (
    <>
      <Seg label="Measure" options={measures} value={measure} onChange={choose} testid="history-measure" />
      <RunPlot
        label={historyLabel(name, history)}
        values={values}
        describe={(i) => `${minute(runs[i].start) || "not recorded"}: ${runValue(measure, values[i])}`}
        ticks={(max) =>
          dateTicks(
            runs.map((run) => run.start),
            max,
          )
        }
        format={(value) => runValue(measure, value)}
        steps={axisSteps(measure)}
        marks={marks}
        levels={medians}
        onOpen={(i) =>
          // With the measure, so that the earlier runs of the other page are open.
          router.go(router.href([account, "clusters", runs[i].cluster_id, "computations", runs[i].id], { measure }))
        }
      />
      <div class="plotkey">
        <span>
          <i class="dot" />
          one run
        </span>
        {medians.length > 0 && (
          <span>
            <i style="border-top:1px dashed var(--text)" />
            median
          </span>
        )}
        {marks.length > 0 && (
          <span>
            <i style="border-top:2px solid var(--st-warn)" />
            change of the duration
          </span>
        )}
      </div>
    </>
  );
}
