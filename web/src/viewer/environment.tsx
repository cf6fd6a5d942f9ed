import { differs, type Environment, loadEnvironment, type Setting, type Version } from "../model/environment";
import { useAsync, useModel } from "../model/page/hooks";
import { Failed, Loading } from "../widgets/basics";
import { DataTable } from "../widgets/table/table";

/** Versions of all packages and the configuration of Dask. */
export function EnvironmentView() {
  const model = useModel();
  const { value, error } = useAsync(() => loadEnvironment(model), [model]);
  if (!model.report.tables.some((t) => t.name === "clusters"))
    return <p class="callout">Versions and configuration were not recorded.</p>;
  if (error) return <Failed message={error} />;
  return value ? <EnvironmentTables environment={value} /> : <Loading />;
}

function EnvironmentTables({ environment: { versions, config } }: { environment: Environment }) {
  return (
    <div class="cols">
      <section class="panel c5" aria-label="Versions">
        <div class="phead">
          <h2>Versions</h2>
        </div>
        <DataTable<Version>
          bare
          label="Package versions"
          name="versions"
          rows={versions}
          rowKey={(v) => v.name}
          compact
          empty="No versions recorded"
          columns={[
            { id: "name", head: "Package", value: (v) => v.name },
            { id: "scheduler", head: "Scheduler", value: (v) => v.scheduler },
            {
              id: "workers",
              head: "Workers",
              value: (v) => v.workers.join(", "),
              cell: (v) => (
                <span class={differs(v) ? "bad" : ""}>
                  {v.workers.join(", ")}
                  {differs(v) && " (differs)"}
                </span>
              ),
            },
          ]}
        />
      </section>
      <section class="panel c7" aria-label="Configuration">
        <DataTable<Setting>
          title="Configuration"
          label="Configuration of the scheduler"
          name="config"
          rows={config}
          rowKey={(s) => s.name}
          compact
          empty="No configuration recorded"
          columns={[
            { id: "name", head: "Setting", value: (s) => s.name, cell: (s) => <span class="mono">{s.name}</span> },
            { id: "value", head: "Value", value: (s) => s.value, cell: (s) => <span class="mono">{s.value}</span> },
          ]}
        />
      </section>
    </div>
  );
}
