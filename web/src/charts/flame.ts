import { changeStep, type FlameNode } from "../model/flame";
import { percent } from "../model/text/format";
import { surface, truncate } from "./canvas";
import { css, font } from "./theme";

export const FLAME_ROW = 20;
/** Thinner frames are not drawn, in pixels. */
const MIN_WIDTH = 0.6;

export interface FlameBox {
  node: FlameNode;
  x: number;
  width: number;
  y: number;
}

/** Place the frames below `focus`, with its callers above over the full width. Leaves out frames too thin to see. */
export function layOutFlame(focus: FlameNode, width: number): { boxes: FlameBox[]; rows: number } {
  const boxes: FlameBox[] = [];
  let rows = 0;
  const scale = focus.total > 0 ? width / focus.total : 0;
  for (let up = focus.parent; up; up = up.parent) boxes.push({ node: up, x: 0, width, y: up.depth });
  const stack: FlameNode[] = [focus];
  for (let node = stack.pop(); node; node = stack.pop()) {
    const w = node.total * scale;
    if (w < MIN_WIDTH) continue;
    boxes.push({ node, x: (node.at - focus.at) * scale, width: w, y: node.depth });
    rows = Math.max(rows, node.depth + 1);
    stack.push(...node.children);
  }

  return { boxes, rows };
}

const CHANGE_COLOURS = ["--df-less-2", "--df-less-1", "--df-same", "--df-more-1", "--df-more-2"] as const;

/** Return the colours of a frame and of its text: by owner of the code, or by change in a differential graph. */
function colours(node: FlameNode): [string, string] {
  if (!node.sides) return [`--fl-${node.whose}`, `--fl-${node.whose}-on`];
  return [CHANGE_COLOURS[changeStep(node.sides.before, node.sides.after) + 2], "--df-on"];
}

export function drawFlame(
  canvas: HTMLCanvasElement,
  width: number,
  rows: number,
  boxes: readonly FlameBox[],
  all: number,
  search: string,
  hovered: FlameNode | null,
): void {
  const s = surface(canvas, width, Math.max(1, rows) * FLAME_ROW);
  if (!s) return;
  const { g } = s;
  g.font = font(11, true);
  g.textBaseline = "middle";
  g.textAlign = "left";
  const want = search.toLowerCase();
  for (const { node, x, width: w, y } of boxes) {
    const match = want === "" || node.name.toLowerCase().includes(want) || node.file.toLowerCase().includes(want);
    g.globalAlpha = match ? 1 : 0.25;
    const [fill, text] = colours(node);
    g.fillStyle = css(fill);
    g.fillRect(x, y * FLAME_ROW, Math.max(0.6, w - (w > 3 ? 1 : 0)), FLAME_ROW - 1);
    if (node === hovered) {
      g.strokeStyle = css("--brush-line");
      g.lineWidth = 1.5;
      g.strokeRect(x + 0.75, y * FLAME_ROW + 0.75, Math.max(1, w - 2.5), FLAME_ROW - 2.5);
    }
    if (w > 26) {
      if (!match) g.globalAlpha = 0.7;
      g.fillStyle = css(match ? text : "--text-3");
      const share = w > 150 && all > 0 && !node.sides ? ` ${percent(node.total / all)}` : "";
      const name = truncate(g, node.name, w - 10 - share.length * 6.6);
      g.fillText(name, x + 5, y * FLAME_ROW + 10);
      if (share && name === node.name) {
        g.globalAlpha *= 0.8;
        g.fillText(share, x + 5 + g.measureText(name).width, y * FLAME_ROW + 10);
      }
    }
  }
  g.globalAlpha = 1;
}

export function flameAt(boxes: readonly FlameBox[], x: number, y: number): FlameNode | null {
  const row = Math.floor(y / FLAME_ROW);
  return boxes.find((b) => b.y === row && x >= b.x && x < b.x + b.width)?.node ?? null;
}
