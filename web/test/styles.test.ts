import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const SRC = new URL("../src/", import.meta.url).pathname;
const SHEETS = globSync("**/*.css", { cwd: SRC }).sort();

/** Split at commas outside of parentheses. */
function splitSelectors(list: string): string[] {
  return list.split(/,(?![^()]*\))/).map((selector) => selector.trim().replace(/\s+/g, " "));
}

/** Return the selectors of a sheet, with those inside of @media. */
function selectorsOf(css: string): Set<string> {
  const preludes = css
    .replace(/\/\*.*?\*\//gs, "")
    .split(/[{};]/)
    .map((text) => text.trim());
  const separators = css.replace(/\/\*.*?\*\//gs, "").match(/[{};]/g) ?? [];
  const rules = preludes.filter((text, i) => separators[i] === "{" && !text.startsWith("@"));
  return new Set(rules.flatMap(splitSelectors));
}

/** Return the selectors that more than one sheet defines, with those sheets. */
function definedTwice(sheets: Record<string, string>): [selector: string, sheets: string[]][] {
  const found = new Map<string, string[]>();
  for (const [name, css] of Object.entries(sheets))
    for (const selector of selectorsOf(css)) found.set(selector, [...(found.get(selector) ?? []), name]);
  // Variables are defined on the root; two sheets have them.
  return [...found].filter(([selector, names]) => names.length > 1 && selector !== ":root");
}

describe("style sheets", () => {
  test("define each selector in one sheet", () => {
    const sheets = Object.fromEntries(SHEETS.map((name) => [name, readFileSync(SRC + name, "utf-8")]));
    expect(definedTwice(sheets)).toEqual([]);
  });

  test("are all imported, once", () => {
    const imported = ["viewer", "app"].flatMap((folder) => {
      const lines = readFileSync(`${SRC}${folder}/styles.ts`, "utf-8").matchAll(/^import "(.*\.css)";$/gm);
      return [...lines].map(([, path]) => new URL(path, `file:///${folder}/styles.ts`).pathname.slice(1));
    });
    expect(imported.sort()).toEqual(SHEETS);
  });

  test("are searched for selectors inside of lists, @media and after comments", () => {
    const sheets = {
      "a.css": ".a, .b:is(.x, .y) { color: red; }\n/* .d { */",
      "b.css": "@media print {\n  .c,\n  .a {\n    color: red\n  }\n}",
      "c.css": ".b:is(.x, .y) {}\n.d {}",
    };
    expect(definedTwice(sheets)).toEqual([
      [".a", ["a.css", "b.css"]],
      [".b:is(.x, .y)", ["a.css", "c.css"]],
    ]);
  });
});
