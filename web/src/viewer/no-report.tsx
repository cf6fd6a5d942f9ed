import { Empty, Failed } from "../widgets/basics";
import { Brand } from "../widgets/icon";
import { Toasts } from "../widgets/toast";

const EXAMPLE = `import daskscope

with daskscope.performance_report("report.html"):
    df.groupby("zone").agg("mean").compute()`;

/** Shown instead of a report: how to create one, or the error. */
export function NoReport({ problem }: { problem?: string }) {
  return (
    <>
      <header class="topbar">
        <Brand href="#overview" />
      </header>
      <main class="wide" data-testid="view-empty">
        <h1 class="sr">daskscope</h1>
        <section class="panel">
          {problem ? (
            <>
              <Failed message={problem} />
              <Empty title="This report cannot be read" snippet={EXAMPLE}>
                {" "}
                Create it again:
              </Empty>
            </>
          ) : (
            <Empty title="No report" snippet={EXAMPLE}>
              {" "}
              This page shows a report of a Dask computation. Wrap your code like this and open the file it writes:
            </Empty>
          )}
        </section>
      </main>
      <Toasts />
    </>
  );
}
