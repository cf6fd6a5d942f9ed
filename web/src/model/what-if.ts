/** Maximum numbers of workers that the server predicts at once. */
const MAX_COUNTS = 8;
export const MAX_WORKERS = 10_000;
export const MAX_THREADS = 1_000;

/** Return numbers of workers for a curve up to `max`: powers of two, the last ones if there are too many, and `max` itself. */
export function workerCounts(max: number): number[] {
  const counts = [max];
  for (let n = 2 ** Math.floor(Math.log2(Math.max(max, 1))); n >= 1 && counts.length < MAX_COUNTS; n /= 2)
    if (n !== max) counts.push(n);
  return counts.reverse();
}

/** Return the number in a text, rounded and within limits; `otherwise` if the text is not a number. */
export function wholeNumber(text: string, otherwise: number, max: number): number {
  const value = Math.round(Number(text));
  return text.trim() === "" || !Number.isFinite(value) ? otherwise : Math.min(Math.max(value, 1), max);
}

/** Return what each number of workers would take if more workers divided the time evenly. */
export function perfectScaling(predictions: readonly { workers: number; duration: number }[]): number[] {
  const [first] = predictions;
  return predictions.map((p) => (first.duration * first.workers) / p.workers);
}
