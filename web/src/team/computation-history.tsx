import type { ComputationHistory } from "../api/server.gen";
import { counted } from "../model/format";
import { useTeam } from "./context";
import { Loaded } from "./loaded";
import { useResource } from "./resources";
import { Sparkline } from "./sparkline";
import { Ago } from "./time-text";

/** The durations of earlier runs of the same code, and when and why they changed. */
export function HistoryOfComputation({ cluster, id }: { cluster: string; id: string }) {
  const { api } = useTeam();
  const path = `clusters/${encodeURIComponent(cluster)}/computations/${encodeURIComponent(id)}/history`;
  const history = useResource<ComputationHistory>(() => api.get(path), [cluster, id]);
  return (
    <Loaded from={history} lines={1}>
      {({ runs, changes }) => (
        <div class="history" data-testid="history">
          <Sparkline
            values={runs.map((run) => run.duration)}
            label={`Duration of ${counted(runs.length, "run")}, oldest first`}
            width={240}
            height={36}
          />
          {changes.length === 0 ? (
            <p class="faint">
              {runs.length < 15 ? "Changes appear after 15 finished runs." : "The duration has not changed."}
            </p>
          ) : (
            <ul>
              {changes.toReversed().map((change) => (
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
