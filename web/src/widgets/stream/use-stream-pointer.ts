import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { LaneLayout } from "../../charts/stream/layout";
import { useModel, useSelection } from "../../model/page/hooks";
import { setHover } from "../../model/page/hover";
import type { TaskDetail } from "../../model/stream";
import { select, zoom } from "../../model/time";

interface StreamArea {
  width: number;
  scroll: number;
  layout: LaneLayout;
}

interface StreamPointer {
  /** The hovered task and the position of the pointer. */
  tip: { detail: TaskDetail; x: number; y: number } | null;
  onDown: (event: PointerEvent) => void;
  onMove: (event: PointerEvent) => void;
  onUp: (event: PointerEvent) => void;
  onLeave: () => void;
}

/** Mouse control of the task stream: hover shows a task, click opens it, drag selects time, Ctrl + wheel zooms. */
export function useStreamPointer(
  canvas: RefObject<HTMLCanvasElement | null>,
  { width, scroll, layout }: StreamArea,
  onTask: (task: number) => void,
): StreamPointer {
  const model = useModel();
  const { axis, nav } = model;
  const selection = useSelection();
  const [tip, setTip] = useState<StreamPointer["tip"]>(null);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const share = event.offsetX / Math.max(1, element.clientWidth);
      const now = nav.state.selection;
      nav.select(zoom(nav.axis, now, Math.exp(event.deltaY * 0.004), now.t0 + share * (now.t1 - now.t0)));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [nav]);

  const timeAt = (x: number) => selection.t0 + (x / Math.max(1, width)) * (selection.t1 - selection.t0);
  const hitAt = async (x: number, y: number): Promise<number> => {
    const rows = layout.rows;
    const at = y + scroll;
    let row = -1;
    for (let r = 0; r < rows.length; r += 3) if (rows[r] <= at && at < rows[r] + layout.rowHeight) row = r;
    if (row < 0) return -1;
    const tick = model.report.stream.tick_us;
    const slack = (2 / width) * (selection.t1 - selection.t0);
    return model.stream.hit(rows[row + 1], rows[row + 2], timeAt(x) / tick, slack / tick);
  };
  const latest = useRef(0);
  const drag = useRef<{ x: number; moved: boolean } | null>(null);
  const onDown = (event: PointerEvent) => {
    if (event.button === 0) drag.current = { x: event.offsetX, moved: false };
  };
  const onMove = (event: PointerEvent) => {
    setHover(timeAt(event.offsetX));
    const request = ++latest.current;
    const { offsetX, offsetY, clientX, clientY } = event;
    if (drag.current && Math.abs(offsetX - drag.current.x) > 4) {
      drag.current.moved = true;
      setTip(null);
      return;
    }
    void hitAt(offsetX, offsetY).then(async (task) => {
      const detail = task >= 0 ? await model.stream.detail(task) : null;
      if (request === latest.current) setTip(detail && { detail, x: clientX, y: clientY });
    });
  };
  const onLeave = () => {
    latest.current++;
    setHover(null);
    setTip(null);
  };
  const onUp = (event: PointerEvent) => {
    const d = drag.current;
    drag.current = null;
    if (!d) return;
    if (d.moved) nav.select(select(axis, timeAt(d.x), timeAt(event.offsetX)));
    else void hitAt(event.offsetX, event.offsetY).then((task) => task >= 0 && onTask(task));
  };
  return { tip, onDown, onMove, onUp, onLeave };
}
