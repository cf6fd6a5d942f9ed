import { prefixTimes } from "../model/cube";
import { useFromCube, useModel } from "../model/page/hooks";
import { ViewHead } from "../widgets/basics";
import { StreamPanel } from "../widgets/stream/stream-panel";
import { TimeRuler } from "../widgets/stream/time-ruler";
import { useWindowHeight } from "../widgets/use-canvas";
import { AnswerLine } from "./answer-line";
import { timelineAnswer } from "./answers";
import { CriticalPath } from "./critical-path";

/** Height of everything else on the page: top bar, ruler, head and foot of the stream. */
const ABOVE = 425;

export function TaskStreamPage() {
  const { report } = useModel();
  const times = useFromCube(
    "time_by_prefix",
    (cube) =>
      prefixTimes(cube, report.prefixes, null).map((parts, i) => ({
        name: report.prefixes[i].prefix,
        us: parts.reduce((a, b) => a + b, 0) || report.prefixes[i].total_us,
      })),
    [report],
  );
  const height = useWindowHeight();
  return (
    <>
      <ViewHead title="Timeline" note="Drag to select time. Click a bar to open its task. Ctrl + wheel to zoom." />
      <AnswerLine answer={times && timelineAnswer(times, report.totals)} />
      <TimeRuler joined />
      <StreamPanel maxHeight={Math.max(360, height - ABOVE)} page />
      <CriticalPath />
    </>
  );
}
