// The style sheets of the report.
// The order is the cascade: general sheets first. Each selector is in one sheet (test/styles.test.ts).
import "../styles/tokens.css";
import "../styles/palette.css";
import "../styles/base.css";
import "../styles/page.css";
import "../widgets/icon.css";
import "../widgets/basics.css";
import "../widgets/controls/controls.css";
import "../widgets/controls/popover.css";
import "../widgets/controls/command-palette.css";
import "../widgets/toast.css";
import "../widgets/metric-strip.css";
import "../widgets/traceback.css";
import "../widgets/bars/bars.css";
import "../widgets/table/table.css";
import "../widgets/table/cards.css";
import "../widgets/stream/stream.css";
import "../widgets/flame/flame.css";
import "../widgets/plots/plots.css";
import "../widgets/memory/memory.css";
import "../widgets/graphs/graphs.css";
import "./viewer.css";
import "./overview/overview.css";
import "./errors/errors.css";
import "./workers/workers.css";
import "./coffea/coffea.css";
import "./events.css";
