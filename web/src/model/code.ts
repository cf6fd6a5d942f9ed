import type { Computation } from "../api/schema.gen";

/** A piece of code, once, with the computations that it submitted. */
export interface CodeBlock {
  file: string;
  code: string;
  calls: Computation[];
  /** Wall time of the computations by line. */
  time: ReadonlyMap<number, number>;
}

/** Group computations by their code, in order of the first call. */
export function codeBlocks(computations: readonly Computation[], stop: number): CodeBlock[] {
  const found = new Map<string, Computation[]>();
  for (const c of computations) {
    const key = c.code ? `${c.code_file}\n${c.code}` : c.computation;
    found.set(key, [...(found.get(key) ?? []), c]);
  }
  return [...found.values()].map((calls) => {
    const time = new Map<number, number>();
    for (const c of calls) time.set(c.code_line, (time.get(c.code_line) ?? 0) + wallOf(c, stop));
    return { file: calls[0].code_file, code: calls[0].code, calls, time };
  });
}

/** Return the line of code that submitted a computation, else its first line; empty if code is not recorded. */
export function callOf(c: Pick<Computation, "code" | "code_line">): string {
  const lines = c.code.split("\n");
  return (lines[c.code_line] ?? lines.find((line) => line.trim()) ?? "").trim();
}

/** Wall time of a computation; one that is running counts until `stop`. */
export function wallOf(c: Pick<Computation, "start_us" | "stop_us">, stop: number): number {
  return Math.max(0, (c.stop_us > 0 ? c.stop_us : stop) - c.start_us);
}
