import { useState } from "preact/hooks";
import { fold, type Frame, packages, parseTraceback } from "../model/traceback";
import { shortFile } from "../model/flame";
import { copy, Panel, Seg } from "./basics";
import { Icon } from "./icon";

/** Message first, innermost frame first; your frames open, library frames folded with a count. */
export function Traceback({ type, message, text, title = "Traceback" }: { type: string; message: string; text: string; title?: string }) {
  const [all, setAll] = useState<"mine" | "all">("mine");
  const { frames } = parseTraceback(text);
  const right = text && (
    <>
      <Seg label="Frames" options={[["mine", "Your code"], ["all", "All frames"]]} value={all} onChange={setAll} />
      <button type="button" class="btn sm" onClick={() => copy(text, "Traceback copied")}>Copy</button>
    </>
  );
  return (
    <Panel title={title} right={right} testid="traceback">
      <div class="frame msg">
        <div>
          <b>{type}{message && `: ${message}`}</b>
        </div>
      </div>
      {frames.length === 0 && <p class="callout">{text ? <span style="white-space:pre-wrap" class="mono">{text}</span> : "No traceback was recorded."}</p>}
      {fold(frames).map((group, i) => (group.mine || all === "all" ? group.frames.map((f, k) => <OneFrame key={`${i}.${k}`} frame={f} hot={f === frames.at(-1) || (group.mine && !fold(frames).slice(0, i).some((g) => g.mine))} />) : <Folded key={i} frames={group.frames} />))}
    </Panel>
  );
}

function OneFrame({ frame: f, hot = false }: { frame: Frame; hot?: boolean }) {
  const code = f.code.filter((line) => !/^[\s^~]*$/.test(line));
  return (
    <div class="frame">
      <div>
        <span class="mono">{f.name || "module"}</span>
        <span class="at" title={f.file}>{shortFile(f.file)}, line {f.line}</span>
        {f.mine && <span class="right tag">your code</span>}
      </div>
      {code.length > 0 && (
        <pre class="src" tabIndex={0}>
          {code.map((line, i) => (
            <span key={i} class={i === 0 && hot ? "hot" : ""}>
              <i>{i === 0 ? f.line : ""}</i> {line}
            </span>
          ))}
        </pre>
      )}
    </div>
  );
}

function Folded({ frames }: { frames: Frame[] }) {
  const [open, set] = useState(false);
  return (
    <div class="frame fold">
      <button type="button" aria-expanded={open} onClick={() => set(!open)}>
        <Icon name="right" />
        {frames.length === 1 ? "1 frame" : `${frames.length} frames`} in {packages(frames)}
      </button>
      {open && frames.map((f, i) => <OneFrame key={i} frame={f} />)}
    </div>
  );
}
