/** Parsing of Python tracebacks, to collapse library frames. */

export interface Frame {
  file: string;
  line: number;
  name: string;
  code: string[];
  isUserCode: boolean;
}

export interface Fold {
  isUserCode: boolean;
  frames: Frame[];
}

const HEAD = /^\s*File "(.*)", line (\d+)(?:, in (.*))?$/;
const LIBRARY =
  /site-packages|dist-packages|[\\/]lib[\\/]python\d|[\\/]lib64[\\/]|^<frozen|[\\/](distributed|dask)[\\/]|[\\/]Lib[\\/]/;

export function parseTraceback(text: string): { frames: Frame[]; rest: string[] } {
  const frames: Frame[] = [];
  const rest: string[] = [];
  let now: Frame | null = null;
  for (const line of text.split("\n")) {
    const head = HEAD.exec(line);
    if (head) {
      now = { file: head[1], line: Number(head[2]), name: head[3] ?? "", code: [], isUserCode: !LIBRARY.test(head[1]) };
      frames.push(now);
    } else if (now && /^\s{2,}/.test(line)) {
      now.code.push(line.replace(/^ {4}/, ""));
    } else {
      now = null;
      if (line.trim() !== "" && !line.startsWith("Traceback (most recent call last)")) rest.push(line);
    }
  }
  return { frames, rest };
}

/** Group the frames, innermost first. Adjacent library frames form one group, which can be collapsed. */
export function fold(frames: readonly Frame[]): Fold[] {
  const out: Fold[] = [];
  for (const frame of [...frames].reverse()) {
    const last = out.at(-1);
    if (last && !last.isUserCode && !frame.isUserCode) last.frames.push(frame);
    else out.push({ isUserCode: frame.isUserCode, frames: [frame] });
  }
  return out;
}

/** Return the first groups, with at most the given number of frames of the user's code. */
export function innermost(groups: readonly Fold[], max: number): Fold[] {
  let left = max;
  const end = groups.findIndex((group) => group.isUserCode && left-- <= 0);
  return groups.slice(0, end < 0 ? undefined : end);
}

/** Return the names of the packages of the frames. */
export function packages(frames: readonly Frame[]): string {
  const names = new Set(
    frames.map((f) => /(?:site|dist)-packages[\\/]([^\\/]+)/.exec(f.file)?.[1]?.replace(/\.py$/, "") ?? "Python"),
  );
  const list = [...names];
  const last = list.length > 3 ? "others" : list.pop();
  return list.length > 0 ? `${list.slice(0, 3).join(", ")} and ${last}` : (last ?? "");
}
