import type { Lane } from "../../api/schema.gen";
import type { StreamData } from "../../model/stream";

/** Steps of the keyboard cursor. Tasks are numbered by lane, then by start. */

/** Return the index of the first number in the ascending list that is at least `value`. */
function atLeast(list: Uint32Array, value: number): number {
  let lo = 0;
  let hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (list[mid] < value) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** Return the tasks [first, last) of a lane. */
function tasksOf(data: StreamData, lane: Lane): [number, number] {
  return [atLeast(data.bar, lane.first), atLeast(data.bar, lane.first + lane.count)];
}

const start = (data: StreamData, task: number) => data.start[data.bar[task]];
const stop = (data: StreamData, task: number) => data.start[data.bar[task]] + data.length[data.bar[task]];

/** Return the first task in [t0, t1) of the topmost lane that has one, or -1. */
export function firstIn(data: StreamData, lanes: readonly Lane[], t0: number, t1: number): number {
  for (const lane of lanes) {
    const [first, last] = tasksOf(data, lane);
    for (let task = first; task < last && start(data, task) < t1; task++) if (stop(data, task) > t0) return task;
  }
  return -1;
}

/** Return the task `across` steps along the lane, or the nearest in time in the next lane `down`; the task itself if there is none. */
export function neighbour(
  data: StreamData,
  lanes: readonly Lane[],
  task: number,
  across: number,
  down: number,
): number {
  const at = data.bar[task];
  let lane = lanes.findIndex((l) => at >= l.first && at < l.first + l.count);
  if (lane < 0) return task;
  if (down === 0) {
    const [first, last] = tasksOf(data, lanes[lane]);
    return Math.max(first, Math.min(last - 1, task + across));
  }
  const middle = (start(data, task) + stop(data, task)) / 2;
  for (lane += down; lane >= 0 && lane < lanes.length; lane += down) {
    const [first, last] = tasksOf(data, lanes[lane]);
    if (last > first) return nearest(data, first, last, middle);
  }
  return task;
}

function nearest(data: StreamData, first: number, last: number, t: number): number {
  let lo = first;
  let hi = last;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (start(data, mid) <= t) lo = mid + 1;
    else hi = mid;
  }
  // Task lo - 1 is the last to start before t, lo the first to start after it.
  if (lo === first) return first;
  if (lo === last) return last - 1;
  return t - stop(data, lo - 1) <= start(data, lo) - t ? lo - 1 : lo;
}
