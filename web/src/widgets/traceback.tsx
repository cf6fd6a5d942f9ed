import { type ComponentChildren, Fragment } from "preact";
import { useState } from "preact/hooks";
import { shortFile } from "../model/flame";
import { type Fold, type Frame, fold, innermost, packages, parseTraceback } from "../model/text/traceback";
import { Panel } from "./basics";
import { copy } from "./clipboard";
import { Seg } from "./controls/inputs";
import { Icon } from "./icon";

/** A traceback with the cause first, and of each exception the message and the innermost frame. Library frames are collapsed. */
export function Traceback({
  type,
  message,
  text,
  title = "Traceback",
  tools,
  open = Number.POSITIVE_INFINITY,
}: {
  /** Of the cause. */
  type: string;
  message: string;
  text: string;
  title?: string;
  /** Further controls in its head. */
  tools?: ComponentChildren;
  /** Frames of the user's code that are shown of each exception, the innermost first. */
  open?: number;
}) {
  const [all, setAll] = useState<"user" | "all">("user");
  const chain = parseTraceback(text);
  const right = (text || tools) && (
    <>
      {tools}
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
      {chain.map(({ error, frames }, i) => {
        const groups = fold(frames);
        return (
          <Fragment key={i}>
            <div class="frame msg">
              <div>
                {i > 0 && <span class="faint">led to </span>}
                <b>{i > 0 ? error : message ? `${type}: ${message}` : type}</b>
              </div>
            </div>
            <Frames groups={all === "all" ? groups : innermost(groups, open)} all={all === "all"} />
          </Fragment>
        );
      })}
      {chain.every(({ frames }) => frames.length === 0) && (
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
    </Panel>
  );
}

/** The frames of an exception. The innermost one is marked, and the innermost one of the user's code. */
function Frames({ groups, all }: { groups: readonly Fold[]; all: boolean }) {
  const own = groups.findIndex((group) => group.isUserCode);
  return (
    <>
      {groups.map((group, i) =>
        group.isUserCode || all ? (
          group.frames.map((f, k) => (
            <TracebackFrame key={`${i}.${k}`} frame={f} hot={i === own || (i === 0 && k === 0)} />
          ))
        ) : (
          <CollapsedFrames key={i} frames={group.frames} />
        ),
      )}
    </>
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
