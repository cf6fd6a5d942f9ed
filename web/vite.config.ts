import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

/** Inline the script as a classic script: it starts while the browser still reads the data below it. A module would wait. */
function viewer(): Plugin {
  return {
    name: "viewer",
    enforce: "post",
    closeBundle() {
      const page = readFileSync("dist/index.html", "utf-8");
      const parts = /^(.*)<script type="module" crossorigin>(.*?)<\/script>(.*)$/s.exec(page);
      if (!parts) throw new Error("The built page has no inlined module script");
      const [, before, code, after] = parts;
      writeFileSync("dist/viewer.html", `${before}<script>(()=>{${code}})()</script>${after}`);
      rmSync("dist/index.html");
    },
  };
}

// Browsers with native light-dark() and Map.groupBy. A fallback for light-dark() would add 4 kB to every report.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), viewer()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2023",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    cssMinify: true,
    reportCompressedSize: true,
    modulePreload: false,
  },
  worker: { format: "iife" },
});
