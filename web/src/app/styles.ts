// The style sheets of the app: first the sheets of the report, then its own.
// The order is the cascade: general sheets first. Each selector is in one sheet (test/styles.test.ts).
import "../viewer/styles";
import "../widgets/live/live.css";
import "./shell/app-shell.css";
import "./parts/parts.css";
import "./runs/runs.css";
import "./home/home.css";
import "./run/run.css";
import "./errors/errors.css";
import "./reports/reports.css";
import "./usage/usage.css";
import "./explore/explore.css";
import "./settings/settings.css";
import "./sign-in/sign-in.css";
