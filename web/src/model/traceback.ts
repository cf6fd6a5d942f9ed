/** A Python traceback taken apart, so that library frames can be folded. */

export interface Frame {
  file: string;
  line: number;
  name: string;
  code: string[];
  mine: boolean;
}

export interface Fold {
  mine: boolean;
  frames: Frame[];
}

const HEAD = /^\s*File "(.*)", line (\d+)(?:, in (.*))?$/;
const THEIRS = /site-packages|dist-packages|[\\/]lib[\\/]python\d|[\\/]lib64[\\/]|^<frozen|[\\/](distributed|dask)[\\/]|[\\/]Lib[\\/]/;

export function parseTraceback(text: string): { frames: Frame[]; rest: string[] } {
  const frames: Frame[] = [];
  const rest: string[] = [];
  let now: Frame | null = null;
  for (const line of text.split("\n")) {
    const head = HEAD.exec(line);
    if (head) {
      now = { file: head[1], line: Number(head[2]), name: head[3] ?? "", code: [], mine: !THEIRS.test(head[1]) };
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

/** Innermost first; neighbours of the same kind together, so that other people's frames fold into one line. */
export function fold(frames: readonly Frame[]): Fold[] {
  const out: Fold[] = [];
  for (const frame of [...frames].reverse()) {
    const last = out.at(-1);
    if (last && !last.mine && !frame.mine) last.frames.push(frame);
    else out.push({ mine: frame.mine, frames: [frame] });
  }
  return out;
}

/** Names of the packages that frames come from. */
export function packages(frames: readonly Frame[]): string {
  const names = new Set(frames.map((f) => /(?:site|dist)-packages[\\/]([^\\/]+)/.exec(f.file)?.[1]?.replace(/\.py$/, "") ?? "Python"));
  const list = [...names];
  return list.length > 3 ? `${list.slice(0, 3).join(", ")} and others` : list.join(" and ");
}
