import "./styles/tokens.css";
import "./styles/parts.css";
import "./styles/narrow.css";
import "./styles/viewer.css";
import "uplot/dist/uPlot.min.css";
import { render } from "preact";
import { loadReport, pickSource } from "./api/source";
import { App } from "./app";
import { warmUp } from "./charts/stream/client";
import { startTheme } from "./charts/theme";
import { Model } from "./model/model";
import { NoReport } from "./pages/no-report";

async function start(): Promise<void> {
  performance.mark("daskscope-start");
  startTheme();
  const root = document.getElementById("app");
  if (!root) return;
  const source = pickSource();
  if (!source) {
    render(<NoReport />, root);
    document.documentElement.dataset.ready = "1";
    return;
  }
  warmUp();
  try {
    const report = await loadReport(source);
    performance.mark("daskscope-report");
    document.title = `${report.title} · daskscope`;
    render(<App model={new Model(report, source)} />, root);
  } catch (error) {
    render(<NoReport problem={error instanceof Error ? error.message : String(error)} />, root);
    document.documentElement.dataset.ready = "1";
  }
}

void start();
