import { useState } from "preact/hooks";
import { shortFile } from "../model/flame";
import { type Frame, fold, innermost, packages, parseTraceback } from "../model/text/traceback";
import { Panel } from "./basics";
import { copy } from "./clipboard";
import { Seg } from "./controls/inputs";
import { Icon } from "./icon";

/** A traceback with the message and the innermost frame first. Library frames are collapsed. */
export function Traceback({
  type,
  message,
  text,
  title = "Traceback",
  open = Number.POSITIVE_INFINITY,
}: {
  type: string;
  message: string;
  text: string;
  title?: string;
  /** Frames of the user's code that are shown, the innermost first. */
  open?: number;
}) {
  const [all, setAll] = useState<"user" | "all">("user");
  const { frames } = parseTraceback(text);
  const groups = fold(frames);
  const shown = all === "all" ? groups : innermost(groups, open);
  const right = text && (
    <>
      <Seg
        label="Frames"
        options={[
          ["user", "Your code"],
          ["all", "All frames"],
        ]}
        value={all}
        onChange={setAll}
      />
      <button type="button" class="btn sm" onClick={() => copy(text, "Traceback copied")}>
        Copy
      </button>
    </>
  );
  return (
    <Panel title={title} right={right} testid="traceback">
      <div class="frame msg">
        <div>
          <b>
            {type}
            {message && `: ${message}`}
          </b>
        </div>
      </div>
      {frames.length === 0 && (
        <p class="callout">
          {text ? (
            <span style="white-space:pre-wrap" class="mono">
              {text}
            </span>
          ) : (
            "No traceback recorded."
          )}
        </p>
      )}
      {shown.map((group, i) =>
        group.isUserCode || all === "all" ? (
          group.frames.map((f, k) => (
            <TracebackFrame
              key={`${i}.${k}`}
              frame={f}
              hot={f === frames.at(-1) || (group.isUserCode && !groups.slice(0, i).some((g) => g.isUserCode))}
            />
          ))
        ) : (
          <CollapsedFrames key={i} frames={group.frames} />
        ),
      )}
    </Panel>
  );
}

function TracebackFrame({ frame: f, hot = false }: { frame: Frame; hot?: boolean }) {
  const code = f.code.filter((line) => !/^[\s^~]*$/.test(line));
  return (
    <div class="frame">
      <div>
        <span class="mono">{f.name || "module"}</span>
        <span class="at" title={f.file}>
          {shortFile(f.file)}, line {f.line}
        </span>
        {f.isUserCode && <span class="right tag">your code</span>}
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

function CollapsedFrames({ frames }: { frames: Frame[] }) {
  const [open, set] = useState(false);
  return (
    <div class="frame fold">
      <button type="button" aria-expanded={open} onClick={() => set(!open)}>
        <Icon name="right" />
        {frames.length === 1 ? "1 frame" : `${frames.length} frames`} in {packages(frames)}
      </button>
      {open && frames.map((f, i) => <TracebackFrame key={i} frame={f} />)}
    </div>
  );
}
