import { useState } from "preact/hooks";
import type { CurrentStacks, LongTask, RunningTasks, StackRequest } from "../../api/server.gen";
import { count, counted } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { type ShortColumn, ShortTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
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

interface Props {
  id: string;
  /** How many tasks run, as far as the progress of the computations says it: what the workers reported last may have ended. */
  tasks: number | null;
}

/** The tasks that have been running longest, with their stacks on request. Shows nothing if no task is running. */
export function ClusterRunning({ id, tasks }: Props) {
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
  if (!value) return null;
  const total = tasks ?? value.total;
  if (total === 0 && !asked) return null;
  const longest = value.items.slice(0, total);
  return (
    <Panel
      title="Running now"
      note={
        longest.length > 0 && longest.length < total
          ? `longest ${count(longest.length)} of ${counted(total, "task")}`
          : counted(total, "task")
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
      {longest.length > 0 ? (
        <TaskTable items={longest} ask={canAsk ? ask : null} cluster={id} />
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

const stack = (ask: (task: LongTask) => Promise<void>): ShortColumn<LongTask> => [
  <span class="sr">Stack</span>,
  (t) => (
    <ActionButton class="sm" run={() => ask(t)} testid="show-stack">
      Show stack
    </ActionButton>
  ),
];

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
    <ShortTable
      label="Tasks that run now"
      class="compact"
      rows={items}
      keyOf={(t) => `${t.worker} ${t.key}`}
      testid="running-task"
      columns={[
        [
          "Task",
          (t) => (
            <Link
              class="name mono cut"
              to={[account, "clusters", cluster, "computations", t.computation_id]}
              title={t.key}
            >
              {t.key}
            </Link>
          ),
        ],
        [
          "Worker",
          (t) => (
            <span class="cut" title={t.worker}>
              {t.worker_name || t.worker}
            </span>
          ),
        ],
        ["Age", (t) => seconds(t.age), "num"],
        ["Usually", (t) => (t.usual === null ? <span class="faint">not known yet</span> : seconds(t.usual)), "num"],
        ...(ask ? [stack(ask)] : []),
      ]}
    />
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
        !missing && <p>The task was not running when the stack was taken.</p>
      )}
    </>
  );
}
