import { renameSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

/** The script runs at the end of the body, when the data is there; the file gets its final name. */
function viewer(): Plugin {
  return {
    name: "viewer",
    enforce: "post",
    closeBundle() {
      renameSync("dist/index.html", "dist/viewer.html");
    },
  };
}

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), viewer()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2023", cssMinify: true, reportCompressedSize: true, modulePreload: false },
  worker: { format: "iife" },
});
