import type { Raw } from "../../api/decode";
import type { StreamView, TaskDetail, TaskMark } from "../../model/stream";
import type { StreamInit } from "./engine";

/** Requests from the page to the worker. */
export type Ask =
  | { kind: "init"; init: StreamInit }
  | { kind: "draw"; view: StreamView; pixels: ArrayBuffer }
  | { kind: "hit"; lane: number; lanes: number; t: number; slack: number }
  | { kind: "detail"; task: number }
  | { kind: "beside"; task: number; across: number; down: number }
  | { kind: "first"; t0: number; t1: number }
  | { kind: "tasks"; t0: number; t1: number; limit: number }
  | { kind: "more"; raws: Partial<Record<string, Raw>> }
  | { kind: "find"; text: string; limit: number }
  | { kind: "marks"; tasks: readonly number[] };

/** Response to each request. */
export interface Answers {
  init: null;
  draw: ArrayBuffer;
  hit: number;
  detail: TaskDetail | null;
  beside: number;
  first: number;
  tasks: { rows: TaskDetail[]; of: number };
  more: null;
  find: { tasks: number[]; of: number };
  marks: TaskMark[];
}

export interface Reply {
  id: number;
  value?: Answers[keyof Answers];
  error?: string;
}
