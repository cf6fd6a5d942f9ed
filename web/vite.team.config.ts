import { defineConfig } from "vite";

// The app of the server: files with hashed names, so that browsers may keep them for ever. Relative, so that any path will do.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist-team",
    target: "es2023",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    cssMinify: true,
    modulePreload: false,
    rolldownOptions: { input: "team.html" },
  },
  worker: { format: "iife" },
});
