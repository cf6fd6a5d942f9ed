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

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), viewer()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2023", cssMinify: true, reportCompressedSize: true, modulePreload: false },
  worker: { format: "iife" },
});
