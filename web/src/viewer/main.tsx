import "./styles";
import { render } from "preact";
import { embeddedComparison, loadReport, pickSource } from "../api/source";
import { StreamClient, warmUp } from "../charts/stream/client";
import { startTheme } from "../charts/theme";
import { Model } from "../model/model";
import { ComparisonPage } from "./comparison/comparison";
import { NoReport } from "./no-report";
import { ReportFile } from "./report-file";

async function start(): Promise<void> {
  warmUp();
  if (document.readyState === "loading")
    await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
  performance.mark("daskscope-start");
  startTheme();
  const root = document.getElementById("app");
  if (!root) return;
  if (document.getElementById("daskscope-comparison")) {
    const comparison = await embeddedComparison();
    document.title = "Comparison · daskscope";
    render(<ComparisonPage comparison={comparison} />, root);
    document.documentElement.dataset.ready = "1";
    return;
  }
  const source = pickSource();
  if (!source) {
    render(<NoReport />, root);
    document.documentElement.dataset.ready = "1";
    return;
  }
  try {
    const report = await loadReport(source);
    performance.mark("daskscope-report");
    document.title = `${report.title} · daskscope`;
    const model = new Model(report, source, new StreamClient(source, report));
    // Let the worker decompress while the page is built. This saves 100 ms until the first paint with 400 lanes.
    await new Promise((resolve) => setTimeout(resolve, 0));
    render(<ReportFile model={model} />, root);
  } catch (error) {
    render(<NoReport problem={error instanceof Error ? error.message : String(error)} />, root);
    document.documentElement.dataset.ready = "1";
  }
}

void start();
