import { Empty, Failed } from "../widgets/basics";
import { Brand } from "../widgets/icon";
import { Toasts } from "../widgets/toast";

const HOW = `import daskscope

with daskscope.performance_report("report.html"):
    df.groupby("zone").agg("mean").compute()`;

/** The page without a report: how to make one, or what went wrong. */
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
              <Empty title="This report could not be read" snippet={HOW}>
                Make it again:
              </Empty>
            </>
          ) : (
            <Empty title="No report yet" snippet={HOW}>
              This page shows what a Dask computation did. Wrap the computation and open the file it writes.
            </Empty>
          )}
        </section>
      </main>
      <Toasts />
    </>
  );
}
