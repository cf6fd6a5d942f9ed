// How long the server needs for a report, from what it took to build others.

/** Reports of fewer tasks are built in less than two seconds. */
const FEW = 100_000;
/** Seconds to start building, and per task: five million tasks take 10 s on two cores, and 20 s if they are busy. */
const START_S = 2;
const PER_TASK_S = 2.5e-6;
/** The bar stops here until the report has arrived. */
const LARGEST_SHARE = 0.95;

/** The expected seconds to build a report; 0 if it needs no progress bar. */
export function expectedSeconds(tasks: number): number {
  return tasks > FEW ? START_S + tasks * PER_TASK_S : 0;
}

/** The estimated share that is done after some seconds. It slows down as it gets closer to its largest value, and never goes back. */
export function estimatedShare(elapsed: number, expected: number): number {
  return Math.min(LARGEST_SHARE, 1 - Math.exp((-2 * elapsed) / expected));
}
