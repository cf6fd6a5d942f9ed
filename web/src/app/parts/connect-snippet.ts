import { rootPath } from "../../api/page-secret";

/** Return the code that connects a Dask client to this server. */
export function connectSnippet(): string {
  return `import dask, daskscope.analytics
dask.config.set({"daskscope.server": "${location.origin}${rootPath()}"})
daskscope.analytics.register()`;
}
