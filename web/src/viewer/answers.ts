/** The first line of each view: its largest thing, for the whole run. */

import type { Category, Error as Failure, Group, Report, Share, Worker } from "../api/schema.gen";
import { capital, groupTime } from "../model/activity";
import type { LineTime } from "../model/flame";
import { isLost } from "../model/model";
import { part, quantityOf } from "../model/quantity";
import { count, counted, nbytes, nbytesOf, percent, shares } from "../model/text/format";
import { isRated, type Pair, rate } from "../model/transfers";

export const FETCHED = part("transferred", "way", "fetched");
export const SHUFFLED = part("transferred", "way", "shuffled");

/** A piece of a sentence: text, code, or a number with the name of its quantity. */
export type Piece = string | { code: string } | { value: string; quantity: string };

/** The fact, and its context. */
export interface ViewAnswer {
  fact: readonly Piece[];
  context: readonly Piece[];
}

const code = (text: string): Piece => ({ code: text || "unnamed" });
const figure = (value: string, quantity: string): Piece => ({ value, quantity });
const only = (text: string): ViewAnswer => ({ fact: [text], context: [] });

/** Return the entry with the largest value; undefined if all are 0. */
function largest<T>(items: readonly T[], value: (item: T) => number): T | undefined {
  return items.reduce<T | undefined>((best, item) => (value(item) > (best ? value(best) : 0) ? item : best), undefined);
}

const sum = <T>(items: readonly T[], value: (item: T) => number) => items.reduce((all, item) => all + value(item), 0);

type Bad = Pick<Report["totals"], "errors" | "killed">;

function failedTasks({ errors, killed }: Bad): Piece[] {
  const failed = errors > 0 ? [figure(counted(errors, "task"), "failed-tasks"), " failed"] : ["No task failed"];
  return [...failed, killed > 0 ? `, ${counted(killed, "task run")} ended with a lost worker.` : "."];
}

/** `times` are the thread times of the task prefixes. */
export function timelineAnswer(times: readonly { name: string; us: number }[], totals: Bad): ViewAnswer {
  const most = largest(times, (t) => t.us);
  if (!most) return only("No task ran.");
  const share = percent(most.us / sum(times, (t) => t.us));
  return {
    fact: [code(most.name), " takes ", figure(share, part("prefix-share", "prefix", most.name)), " of the task time."],
    context: failedTasks(totals),
  };
}

/** `lines` are sorted by self time. `file` shortens a path. */
export function profileAnswer(
  lines: readonly LineTime[],
  total: number,
  file: (path: string) => string,
  missed: number,
): ViewAnswer {
  const [line] = lines;
  if (!line || total === 0) return only("No samples of tasks.");
  return {
    fact: [
      figure(percent(line.self / total), quantityOf("line-share", line.file, line.line, line.name)),
      " of compute time is in ",
      code(line.name),
      `, ${file(line.file)}:${line.line}.`,
    ],
    context: missed >= 0.1 ? [`${percent(missed)} of samples were missed; shares are approximate.`] : [],
  };
}

/** Return a share of thread time, rounded as in the bar of the overview, so that parts add up alike. */
function threadShare(split: readonly Share[], ...categories: readonly string[]): string {
  const texts = shares(split.map((s) => s.us)).filter((_, i) => categories.includes(split[i].category));
  const whole = sum(texts, (text) => (/^\d+ %$/.test(text) ? Number.parseInt(text, 10) : 0));
  const part = sum(split, (s) => (categories.includes(s.category) ? s.us : 0));
  return whole > 0 ? `${whole} %` : percent(part / sum(split, (s) => s.us));
}

const inShare = (category: Category): string => part("thread-share", "activity", category);

/** Activities between computing and idle, as in the headline of the run. */
const OTHERS: readonly (readonly [Category, string, string])[] = [
  ["noncpu", "waiting in tasks", "thread-share:waiting"],
  ["serialize", "serializing", inShare("serialize")],
  ["disk", "on disk", inShare("disk")],
  ["transfer", "on transfers", inShare("transfer")],
  ["failed", "lost or failed", inShare("failed")],
];

export function timeAnswer(split: readonly Share[]): ViewAnswer {
  if (sum(split, (s) => s.us) === 0) return only("No thread time recorded.");
  const idle = split.find((s) => s.category === "idle");
  const reason = largest(idle?.reasons ?? [], (r) => r.us);
  const texts = shares(split.map((s) => s.us));
  // What rounds to nothing is left out, except for waiting, which every run has.
  const others = OTHERS.flatMap(([category, words, quantity]): Piece[] => {
    const at = split.findIndex((s) => s.category === category);
    const isShown = at >= 0 && split[at].us > 0 && (category === "noncpu" || /^[1-9]/.test(texts[at]));
    return isShown ? [figure(threadShare(split, category), quantity), ` ${words}, `] : [];
  });
  return {
    fact: [
      figure(threadShare(split, "cpu"), "thread-share:computing"),
      " of thread time is computing, ",
      ...others,
      figure(threadShare(split, "idle"), part("thread-share", "activity", "idle")),
      " idle.",
    ],
    context: reason ? [`Most idle time: ${reason.label.toLowerCase()}.`] : [],
  };
}

/** Names a worker in a sentence, as in “worker 2”. */
type Named = (address: string) => string;

export function memoryAnswer(
  workers: readonly Worker[],
  spilled: number,
  name: Named,
  at: (us: number) => string,
): ViewAnswer {
  const most = largest(workers, (w) => w.peak_memory);
  if (!most) return only("No memory recorded.");
  const [peak, limit] = nbytesOf(most.peak_memory, most.memory_limit);
  const quantity = quantityOf("peak-memory", most.worker);
  return {
    fact: [
      "Peak ",
      figure(most.memory_limit > 0 ? `${peak} of ${limit}` : nbytes(most.peak_memory), quantity),
      ` on ${name(most.worker)}${most.peak_us > 0 ? `, reached by ${at(most.peak_us)}` : ""}.`,
    ],
    context: spilled > 0 ? ["Up to ", figure(nbytes(spilled), "spilled"), " spilled at once."] : ["Nothing spilled."],
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

/** `pairs` are the transfers of the whole run by sender and receiver. A receiver that is not a worker is a client. */
export function networkAnswer(
  pairs: readonly Pair[],
  shuffled: number,
  name: Named,
  isWorker: (address: string) => boolean,
): ViewAnswer {
  const received = new Map<string, number>();
  for (const p of pairs) received.set(p.destination, (received.get(p.destination) ?? 0) + p.nbytes);
  const most = largest([...received], ([, bytes]) => bytes);
  const p2p: Piece[] = shuffled > 0 ? ["P2P shuffles moved ", figure(nbytes(shuffled), SHUFFLED), "."] : [];
  if (!most) return { fact: ["No task fetched data."], context: p2p };
  const all = sum(pairs, (p) => p.nbytes);
  if (!pairs.some((p) => isWorker(p.destination)))
    return {
      fact: ["No transfers between workers."],
      context: ["Clients fetched ", figure(nbytes(all), FETCHED), ". ", ...p2p],
    };
  const [bytes, whole] = nbytesOf(most[1], all);
  const rates = pairs.filter(isRated).map(rate);
  return {
    fact: [
      `${capital(name(most[0]))} fetched most: `,
      figure(/[a-z]/i.test(bytes) ? bytes : `${bytes} ${whole.split(" ")[1]}`, quantityOf("fetched", most[0])),
      " of ",
      figure(whole, FETCHED),
      ".",
    ],
    context: [...(rates.length > 0 ? [`The median pair moved ${nbytes(median(rates))}/s. `] : []), ...p2p],
  };
}

/** `uptime` is how long a worker was connected. */
export function workersAnswer(workers: readonly Worker[], name: Named, uptime: (worker: Worker) => number): ViewAnswer {
  if (workers.length === 0) return only("No worker joined.");
  const lost = workers.filter(isLost).length;
  // A worker that joined at the end had no time to be busy.
  const longest = Math.max(...workers.map(uptime));
  const sorted = workers.filter((w) => 2 * uptime(w) >= longest).sort((a, b) => b.busy_share - a.busy_share);
  const one = (w: Worker): Piece[] => [
    ` ${name(w.worker)} with `,
    figure(percent(w.busy_share), quantityOf("busy-share", w.worker)),
  ];
  const [most, least] = [sorted[0], sorted[sorted.length - 1]];
  const share = figure(percent(most.busy_share), quantityOf("busy-share", most.worker));
  // The table has workers with a shorter uptime, too, and they may be busier.
  const among =
    sorted.length < workers.length ? `Busiest of the ${sorted.length} that were up longest:` : "Busiest while up:";
  return {
    fact: [
      figure(counted(workers.length, "worker"), "workers"),
      " in total, ",
      figure(count(lost), "lost-workers"),
      " lost.",
    ],
    context:
      workers.length === 1
        ? ["Busy ", share, " of the time while up."]
        : sorted.length === 1
          ? [`${capital(name(most.worker))} was up longest, and busy `, share, " of that time."]
          : [among, ...one(most), ", least busy:", ...one(least), "."],
  };
}

export function graphAnswer(groups: readonly Group[]): ViewAnswer {
  if (groups.length === 0) return only("No task groups recorded.");
  const most = largest(groups, groupTime);
  const failed = largest(groups, (g) => g.errors);
  const where: Piece[] = failed
    ? ["Most failures: ", code(failed.prefix), `, ${counted(failed.errors, "task")}.`]
    : ["No task failed."];
  if (!most) return { fact: [`${counted(groups.length, "task group")} without recorded times.`], context: where };
  const share = percent(groupTime(most) / sum(groups, groupTime));
  return {
    fact: [code(most.prefix), ` takes ${share} of the time of ${counted(groups.length, "task group")}.`],
    context: where,
  };
}

/** Say what lost workers cost: no task failed because of them, but their runs and results were repeated. */
function lostWith(workers: readonly Worker[], { killed, recomputed }: Report["totals"], name: Named): Piece[] {
  const lost = workers.filter(isLost);
  if (lost.length === 0) return [];
  const who = lost.length === 1 ? name(lost[0].worker) : counted(lost.length, "lost worker");
  const runs = killed === 0 ? "No task run was" : `${counted(killed, "task run")} ${killed === 1 ? "was" : "were"}`;
  const results = `${counted(recomputed, "result")} ${recomputed === 1 ? "was" : "were"}`;
  return [`${runs} killed with ${who}. ${recomputed > 0 ? results : "No result was"} recomputed.`];
}

/** `workers` has all workers of the run. */
export function failuresAnswer(
  errors: readonly Failure[],
  totals: Report["totals"],
  workers: readonly Worker[],
  name: Named,
): ViewAnswer {
  const [most] = errors;
  const lost = lostWith(workers, totals, name);
  if (!most) return { fact: ["No task failed."], context: lost };
  return {
    fact: [
      totals.errors > 0
        ? figure(counted(totals.errors, "task"), "failed-tasks")
        : figure(counted(totals.retries, "task run"), "retried"),
      totals.errors > 0 ? " failed: most often " : " failed and were retried: most often ",
      code(most.type),
      ...(most.prefixes[0] ? [" in ", code(most.prefixes[0])] : []),
      ", ",
      figure(counted(most.count, "time"), quantityOf("occurrences", most.fingerprint)),
      ".",
    ],
    context: [...(errors.length > 1 ? [`${counted(errors.length - 1, "other error group")}. `] : []), ...lost],
  };
}

/** Why there is no path. A task that never started is on none. */
export function noPathText(groups: readonly Pick<Group, "stop_us" | "dependencies">[]): string {
  const ran = (group?: Pick<Group, "stop_us">) => group !== undefined && group.stop_us > 0;
  return groups.some((group) => ran(group) && group.dependencies.some((i) => ran(groups[i])))
    ? "Dependencies between tasks were not recorded."
    : "No task that depends on another one ran.";
}
