import type { Computation } from "../api/schema.gen";

/** A piece of a file, with the wall time of the computations that each line submitted. */
export interface Excerpt {
  code: string;
  time: Map<number, number>;
}

/** A file, once, with its excerpts and the computations that they submitted. */
export interface CodeFile {
  file: string;
  excerpts: Excerpt[];
  calls: Computation[];
}

/** Group computations by file, in order of the first call. An excerpt that is part of a longer one is shown there. */
export function codeFiles(computations: readonly Computation[], stop: number): CodeFile[] {
  const found = new Map<string, Computation[]>();
  for (const c of computations) {
    // Code without a file name gets its own entry.
    const key = c.code ? c.code_file || c.code : c.computation;
    found.set(key, [...(found.get(key) ?? []), c]);
  }
  return [...found.values()].map((calls) => ({
    file: calls[0].code_file,
    excerpts: excerptsOf(calls, stop),
    calls,
  }));
}

function excerptsOf(calls: readonly Computation[], stop: number): Excerpt[] {
  const texts = [...new Set(calls.map((c) => c.code).filter(Boolean))];
  const whole = texts.filter((text) => !texts.some((other) => other !== text && lineOf(text, other) >= 0));
  const excerpts = whole.map((code) => ({ code, time: new Map<number, number>() }));
  for (const c of calls) {
    const home = excerpts.find((e) => lineOf(c.code, e.code) >= 0);
    if (!home || !c.code) continue;
    const line = lineOf(c.code, home.code) + c.code_line;
    home.time.set(line, (home.time.get(line) ?? 0) + wallOf(c, stop));
  }
  return excerpts;
}

/** The line at which a piece of code begins in another one; -1 if it is not part of it. */
function lineOf(part: string, whole: string): number {
  const at = `\n${whole}\n`.indexOf(`\n${part.replace(/\n$/, "")}\n`);
  return at < 0 ? -1 : whole.slice(0, at).split("\n").length - 1;
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
