import { MAX_PREDICTED_COUNTS } from "../api/limits.gen";
import type { PredictedCluster } from "../api/server.gen";
import { count, counted, duration } from "./text/format";

type Times = Pick<PredictedCluster, "workers" | "duration" | "max_duration">;

/** Return numbers of workers for a curve up to `max`: powers of two, the last ones if there are too many, and `max` itself. */
export function workerCounts(max: number): number[] {
  const counts = [max];
  for (let n = 2 ** Math.floor(Math.log2(Math.max(max, 1))); n >= 1 && counts.length < MAX_PREDICTED_COUNTS; n /= 2)
    if (n !== max) counts.push(n);
  return counts.reverse();
}

/** Return the number in a text, rounded and within limits; `otherwise` if the text is not a number. */
export function wholeNumber(text: string, otherwise: number, max: number): number {
  const value = Math.round(Number(text));
  return text.trim() === "" || !Number.isFinite(value) ? otherwise : Math.min(Math.max(value, 1), max);
}

/** Return the time on each number of workers if more workers divided it evenly. */
export function perfectScaling(predictions: readonly { workers: number; duration: number }[]): number[] {
  const [first] = predictions;
  return predictions.map((p) => (first.duration * first.workers) / p.workers);
}

/** Return the wall time of a prediction, or its range. */
export function wallTime(p: Pick<Times, "duration" | "max_duration">): string {
  const [least, most] = [duration(1e6 * p.duration), duration(1e6 * p.max_duration)];
  return least === most ? least : `${least} to ${most}`;
}

/** Return whether the wall time of a prediction is a range. */
export function hasRange(predictions: readonly Pick<Times, "duration" | "max_duration">[]): boolean {
  return predictions.some((p) => wallTime(p).includes(" to "));
}

/** Describe the curve to screen readers. */
export function curveLabel(predictions: readonly Times[]): string {
  const [first, last] = [predictions[0], predictions[predictions.length - 1]];
  return `${wallTime(first)} with ${counted(first.workers, "worker")}, ${wallTime(last)} with ${count(last.workers)}. ${curveKey(predictions)}`;
}

/** Explain the lines of the curve. */
export function curveKey(predictions: readonly Times[]): string {
  return `${hasRange(predictions) ? "Shaded: the range up to the longest wall time. " : ""}Dashed: perfect scaling.`;
}
