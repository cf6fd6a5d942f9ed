import { useState } from "preact/hooks";
import type { CurrentStacks, LongTask, RunningTasks, StackRequest } from "../../api/server.gen";
import { count, counted } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { CardTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
import { ScrollRegion } from "../parts/scroll-region";
import { seconds } from "../parts/time-text";
import { useCan, useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { LoadError } from "../shell/loaded";
import { useLive } from "../shell/resources";
import { AllStacks, OneStack } from "./stack-view";

/** What the user asked for: the stack of one task, or all stacks if the task is null. */
interface Asked {
  request: number;
  task: LongTask | null;
}

/** The tasks that have been running longest, with their stacks on request. Shows nothing if no task is running. */
export function ClusterRunning({ id }: { id: string }) {
  const { api, account } = useTeam();
  const canAsk = useCan("write");
  const path = `clusters/${encodeURIComponent(id)}`;
  const running = useLive<RunningTasks>(id, () => api.get(`${path}/running`), [id, account], 1000);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [answer, setAnswer] = useState<CurrentStacks | null>(null);
  const isSettled =
    asked === null || (answer !== null && answer.request >= asked.request && answer.state !== "waiting");
  const stacks = useLive<null>(
    id,
    async () => {
      if (!isSettled) setAnswer(await api.get<CurrentStacks>(`${path}/stacks`));
      return null;
    },
    [id, account, asked?.request],
    500,
  );
  const ask = async (task: LongTask | null) => {
    const { request } = await api.send<StackRequest>("POST", `${path}/stacks`, { worker: task?.worker ?? "" });
    setAnswer(null);
    setAsked({ request, task });
  };
  const { value } = running;
  if (running.error) return <LoadError error={running.error} at={value ? running.at : 0} retry={running.reload} />;
  if (!value || (value.total === 0 && !asked)) return null;
  return (
    <Panel
      title="Running now"
      note={
        value.items.length < value.total
          ? `longest ${count(value.items.length)} of ${counted(value.total, "task")}`
          : counted(value.total, "task")
      }
      right={
        canAsk && (
          <ActionButton class="sm" run={() => ask(null)} testid="show-all-stacks">
            Show all stacks
          </ActionButton>
        )
      }
      testid="running-now"
    >
      {value.items.length > 0 ? (
        <TaskTable items={value.items} ask={canAsk ? ask : null} cluster={id} />
      ) : (
        <p class="callout">No task has been running for longer than a second.</p>
      )}
      {asked && (
        <div class="stack-answer" data-testid="stack-answer" aria-live="polite">
          {stacks.error && !isSettled ? (
            <LoadError error={stacks.error} at={0} retry={stacks.reload} />
          ) : (
            <StackAnswer asked={asked} answer={answer} />
          )}
          <button type="button" class="btn sm" onClick={() => setAsked(null)}>
            Hide
          </button>
        </div>
      )}
    </Panel>
  );
}

function TaskTable({
  items,
  ask,
  cluster,
}: {
  items: readonly LongTask[];
  ask: ((task: LongTask) => Promise<void>) | null;
  cluster: string;
}) {
  const { account } = useTeam();
  return (
    <ScrollRegion label="Tasks that run now">
      <CardTable class="compact">
        <thead>
          <tr>
            <th>Task</th>
            <th>Worker</th>
            <th class="num">Age</th>
            <th class="num">Usually</th>
            {ask && (
              <th>
                <span class="sr">Stack</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {items.map((t) => (
            <tr key={`${t.worker} ${t.key}`} data-testid="running-task">
              <td>
                <Link
                  class="name mono cut"
                  to={[account, "clusters", cluster, "computations", t.computation_id]}
                  title={t.key}
                >
                  {t.key}
                </Link>
              </td>
              <td>
                <span class="cut" title={t.worker}>
                  {t.worker_name || t.worker}
                </span>
              </td>
              <td class="num">{seconds(t.age)}</td>
              <td class="num">{t.usual === null ? <span class="faint">not known yet</span> : seconds(t.usual)}</td>
              {ask && (
                <td>
                  <ActionButton class="sm" run={() => ask(t)} testid="show-stack">
                    Show stack
                  </ActionButton>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </CardTable>
    </ScrollRegion>
  );
}

function StackAnswer({ asked, answer }: { asked: Asked; answer: CurrentStacks | null }) {
  if (!answer || answer.request < asked.request || answer.state === "waiting")
    return <p role="status">Waiting for the workers. This takes a few seconds.</p>;
  if (answer.state === "no answer")
    return (
      <p>The recorder of this cluster did not answer. It may be older than this server, or its scheduler is busy.</p>
    );
  const missing =
    answer.answered < answer.workers || answer.why
      ? `${count(answer.answered)} of ${counted(answer.workers, "busy worker")} answered${answer.why ? ` (${answer.why})` : ""}. `
      : "";
  const { task } = asked;
  if (task === null)
    return (
      <>
        {missing && <p>{missing}</p>}
        {answer.items.length > 0 ? <AllStacks answer={answer} /> : <p>No task was running.</p>}
      </>
    );
  // If keys are not recorded, several tasks have the same name.
  const item =
    answer.items.find((one) => one.key === task.key) ??
    answer.items.find((one) => one.prefix === task.prefix && one.worker === task.worker);
  return (
    <>
      {missing && <p>{missing}</p>}
      {item ? (
        <OneStack answer={answer} item={item} />
      ) : (
        !missing && <p>The task was no longer running when the stack was taken.</p>
      )}
    </>
  );
}
