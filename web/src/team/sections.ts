/** Sections of the app: path, name, and the key after G that opens it. */
export const SECTIONS = [
  ["", "Home", "h"],
  ["clusters", "Clusters", "c"],
  ["errors", "Errors", "e"],
  ["reports", "Reports", "r"],
  ["usage", "Usage", "u"],
  ["explore", "Explore", "x"],
  ["settings", "Settings", "s"],
] as const;
