import { useEffect, useMemo, useState } from "preact/hooks";
import { drawFlame, FLAME_ROW, flameAt, layOutFlame } from "../../charts/flame";
import { changeText } from "../../model/comparison";
import { type FlameNode, flatten, shortFile } from "../../model/flame";
import { counted, duration, percent } from "../../model/text/format";
import { useCanvas } from "../use-canvas";

export type FlameUnit = "seconds" | "samples";

/** Return the total of a frame in words. */
export function flameAmount(total: number, unit: FlameUnit): string {
  return unit === "seconds" ? duration(total * 1e6) : counted(total, "sample");
}

interface Props {
  top: FlameNode;
  search: string;
  /** What totals count: seconds, or samples where they cannot be converted to time. */
  unit: FlameUnit;
  maxRows?: number;
}

/** Return the time of a frame before and after, in seconds per run. */
function sidesText({ before, after }: { before: number; after: number }): string {
  const change = before > 0 ? ` (${changeText({ ratio: after / before - 1 })})` : "";
  return `${duration(before * 1e6)} before, ${duration(after * 1e6)} after${change}`;
}

/** A flame graph. A click zooms into a frame, a click on a frame above it zooms out. */
export function FlameGraph({ top, search, unit, maxRows = 200 }: Props) {
  const [focusPath, setFocusPath] = useState<string[]>([]);
  const [hovered, setHovered] = useState<FlameNode | null>(null);
  const focus = useMemo(() => {
    let node = top;
    for (const step of focusPath) node = node.children.find((c) => `${c.file}\0${c.name}` === step) ?? node;
    return node;
  }, [top, focusPath]);
  useEffect(() => setHovered(null), [top]);
  const [layoutWidth, setLayoutWidth] = useState(0);
  const layout = useMemo(() => layOutFlame(focus, layoutWidth || 600), [top, focus, layoutWidth]);
  const rows = Math.min(layout.rows, maxRows);
  const boxes = useMemo(() => layout.boxes.filter((b) => b.y < rows), [layout, rows]);
  const [box, canvas, width] = useCanvas(
    (c, w) => drawFlame(c, w, rows, boxes, top.total, search, hovered),
    [boxes, search, hovered, rows],
  );
  useEffect(() => setLayoutWidth(width), [width]);
  const matched = useMemo(() => {
    if (!search) return null;
    const want = search.toLowerCase();
    let sum = 0;
    let until = -1;
    for (const node of flatten(top)) {
      if (node.at < until && node.depth > 0) continue;
      if (node.name.toLowerCase().includes(want) || node.file.toLowerCase().includes(want)) {
        sum += node.total;
        until = node.at + node.total;
      }
    }
    return sum;
  }, [top, search]);
  const zoom = (node: FlameNode | null) => {
    const path: string[] = [];
    for (let n = node; n?.parent; n = n.parent) path.unshift(`${n.file}\0${n.name}`);
    setFocusPath(path);
  };
  const onKey = (event: KeyboardEvent) => {
    const now = hovered ?? focus;
    const siblings = now.parent?.children ?? [];
    const next = {
      ArrowDown: now.children[0],
      ArrowUp: now.parent,
      ArrowLeft: siblings[siblings.indexOf(now) - 1],
      ArrowRight: siblings[siblings.indexOf(now) + 1],
    }[event.key];
    if (event.key === "Enter") zoom(now);
    else if (next) setHovered(next);
    else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
  };
  const shown = hovered ?? focus;
  const time = unit === "seconds" && !shown.sides ? `${duration(shown.total * 1e6)}, ` : "";
  return (
    <>
      <div class="flame" ref={box}>
        <canvas
          ref={canvas}
          data-testid="flame-canvas"
          tabIndex={0}
          role="img"
          style={{ height: `${rows * FLAME_ROW}px` }}
          aria-label={`${top.sides ? "Differential flame graph" : `Flame graph of ${flameAmount(top.total, unit)}`}${top.children[0] ? `; hottest: ${top.children[0].name}` : ""}. Arrow keys move, Enter zooms. The table below lists the same samples.`}
          onPointerMove={(e) => setHovered(flameAt(boxes, e.offsetX, e.offsetY))}
          onPointerLeave={() => setHovered(null)}
          onClick={(e) => zoom(flameAt(boxes, e.offsetX, e.offsetY))}
          onKeyDown={onKey}
        />
      </div>
      <p class="flamestatus" aria-live="polite">
        <span class="mono">{shown.name}</span> {shown.file && <span class="faint">{shortFile(shown.file)}</span>} {time}
        {shown.sides
          ? sidesText(shown.sides)
          : `${percent(top.total ? shown.total / top.total : 0)} total, ${percent(top.total ? shown.self / top.total : 0)} self`}
        {matched !== null && (
          <>
            ; “{search}” matches {percent(top.total ? matched / top.total : 0)}
          </>
        )}
        {focus !== top && (
          <>
            {" "}
            <button type="button" class="link" onClick={() => setFocusPath([])}>
              Zoom out
            </button>
          </>
        )}
      </p>
    </>
  );
}
