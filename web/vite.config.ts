import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

/** The script runs while the data behind it is still being read: a module would wait for all of it, and so would its worker. */
function viewer(): Plugin {
  return {
    name: "viewer",
    enforce: "post",
    closeBundle() {
      const page = readFileSync("dist/index.html", "utf-8");
      const parts = /^(.*)<script type="module" crossorigin>(.*?)<\/script>(.*)$/s.exec(page);
      if (!parts) throw new Error("the built page has no inlined module script");
      const [, before, code, after] = parts;
      writeFileSync("dist/viewer.html", `${before}<script>(()=>{${code}})()</script>${after}`);
      rmSync("dist/index.html");
    },
  };
}

// Browsers that know light-dark() by themselves; written out for others it is 4 kB of every report. Map.groupBy needs the same ones.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), viewer()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2023", cssTarget: ["chrome123", "firefox120", "safari17.5"], cssMinify: true, reportCompressedSize: true, modulePreload: false },
  worker: { format: "iife" },
});
