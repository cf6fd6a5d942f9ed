import type { Category, ComparedChange } from "../api/schema.gen";
import { NOTHING, percent } from "./text/format";

export const CATEGORY_LABELS: Readonly<Record<Category, string>> = {
  cpu: "CPU",
  noncpu: "Waiting",
  serialize: "Serialize",
  disk: "Disk",
  transfer: "Transfer",
  failed: "Lost or failed",
  idle: "Idle",
};

/** Format the relative change with its sign. */
export function changeText({ ratio }: Pick<ComparedChange, "ratio">): string {
  if (ratio === null) return NOTHING;
  if (Math.abs(ratio) < 0.001) return "0 %";
  return `${ratio > 0 ? "+" : "−"}${percent(Math.abs(ratio))}`;
}

/** Format a value that may not have been recorded. */
export function quantityText(value: number | null, text: (value: number) => string): string {
  return value === null ? "not recorded" : text(value);
}
