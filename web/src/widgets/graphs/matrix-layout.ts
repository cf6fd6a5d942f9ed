/** Cells of this width have room for a value. */
const NAMED_CELL = 58;
const MIN_CELL = 10;
const MAX_CELL = 120;
const MAX_HEIGHT = 40;
/** Mean width of a character of the labels, which are 11 px high. */
const CHARACTER = 6.2;
const GAP = 12;

/** Sizes in pixels of a matrix of senders (rows) and receivers (columns). */
export interface MatrixLayout {
  /** Where the cells begin: right of the names of the rows. */
  left: number;
  width: number;
  height: number;
  /** Whether cells have room for a value, and for a name above them. */
  isNamed: boolean;
}

const widthOf = (text: string) => Math.ceil(text.length * CHARACTER);

/** Return the sizes of a matrix that is at most as wide as the room, unless there are too many workers. */
export function matrixLayout(room: number, names: readonly string[]): MatrixLayout {
  const longest = Math.max(0, ...names.map(widthOf));
  const left = GAP + Math.min(longest, Math.max(40, room / 4));
  const fitting = Math.floor((room - left - 2) / Math.max(1, names.length));
  const width = Math.max(MIN_CELL, Math.min(MAX_CELL, fitting));
  return { left, width, height: Math.min(width, MAX_HEIGHT), isNamed: width >= NAMED_CELL };
}

/** Cut a name to a width. */
export function cutTo(name: string, width: number): string {
  const most = Math.max(1, Math.floor(width / CHARACTER));
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

/** Return the opacity of a cell for a share of the maximum. The colour of text is readable on all that have a value. */
export function strength(share: number, isNamed: boolean): number {
  return 0.08 + (isNamed ? 0.6 : 0.92) * share;
}
