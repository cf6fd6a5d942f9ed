/** Layers of the web code, lowest first. A module imports from its own layer and from those below it, type-only imports included. */
const LAYERS = ["api", "model", "(charts|widgets)", "viewer", "app"];

/** One rule per layer: no import of a layer above it. */
const layerRules = LAYERS.slice(0, -1).map((layer, i) => ({
  name: `${layer.replace(/[()]/g, "").replace("|", "-and-")}-import-only-below`,
  severity: "error",
  from: { path: `^src/${layer}/` },
  to: { path: `^src/(${LAYERS.slice(i + 1).join("|")})/` },
}));

module.exports = {
  forbidden: [
    ...layerRules,
    {
      name: "charts-know-no-widgets",
      severity: "error",
      from: { path: "^src/charts/" },
      to: { path: "^src/widgets/" },
    },
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    { name: "no-unresolved", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "no-orphans",
      comment: "A module that nothing imports is dead code.",
      severity: "error",
      from: { orphan: true, pathNot: "\\.worker\\.ts$" },
      to: {},
    },
  ],
  options: {
    parser: "swc",
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      extensions: [".ts", ".tsx", ".css"],
      exportsFields: ["exports"],
      conditionNames: ["import", "types"],
    },
  },
};
