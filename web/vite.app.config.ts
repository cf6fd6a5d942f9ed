import { defineConfig } from "vite";

// The app of the server. File names are hashed, so that browsers can cache them forever; URLs are relative, so that any base path works.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist-app",
    target: "es2023",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    cssMinify: true,
    modulePreload: false,
    rolldownOptions: { input: "app.html" },
  },
  worker: { format: "iife" },
});
