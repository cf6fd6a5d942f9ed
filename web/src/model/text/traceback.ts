/** Parsing of Python tracebacks, to collapse library frames. */

export interface Frame {
  file: string;
  line: number;
  name: string;
  code: string[];
  isUserCode: boolean;
}

/** An exception: its message after the frames, and its frames, outermost first. */
export interface Raised {
  error: string;
  frames: Frame[];
}

export interface Fold {
  isUserCode: boolean;
  frames: Frame[];
}

const HEAD = /^\s*File "(.*)", line (\d+)(?:, in (.*))?$/;
/** The lines of Python between an exception and the one that followed from it. */
const LINK = /^(The above exception was the direct cause of|During handling of the above exception, another)/;
const LIBRARY =
  /site-packages|dist-packages|[\\/]lib[\\/]python\d|[\\/]lib64[\\/]|^<frozen|[\\/](distributed|dask)[\\/]|[\\/]Lib[\\/]/;

/** Return the exceptions of a traceback as Python prints them: the cause comes before what followed from it. */
export function parseTraceback(text: string): Raised[] {
  let raised: Raised = { error: "", frames: [] };
  const chain = [raised];
  let now: Frame | null = null;
  for (const line of text.split("\n")) {
    const head = HEAD.exec(line);
    if (head) {
      now = { file: head[1], line: Number(head[2]), name: head[3] ?? "", code: [], isUserCode: !LIBRARY.test(head[1]) };
      raised.frames.push(now);
    } else if (now && /^\s{2,}/.test(line)) {
      now.code.push(line.replace(/^ {4}/, ""));
    } else {
      now = null;
      if (LINK.test(line)) {
        raised = { error: "", frames: [] };
        chain.push(raised);
      } else if (line.trim() !== "" && !line.startsWith("Traceback (most recent call last)"))
        raised.error += raised.error ? `\n${line}` : line;
    }
  }
  return chain;
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
