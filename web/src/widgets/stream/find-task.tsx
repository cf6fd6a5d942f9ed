import { useEffect, useRef, useState } from "preact/hooks";
import { type Loaded, useAsync, useModel, useParam } from "../../model/page/hooks";
import { count } from "../../model/text/format";
import { Search } from "../controls/inputs";
import { Icon } from "../icon";
import { moveSelectionTo } from "./use-task-cursor";

/** Matches that are marked and that next and previous visit. */
export const MAX_FOUND = 5000;

export interface Found {
  text: string;
  tasks: readonly number[];
  of: number;
}

/** Return the tasks that match the search text in the URL; null without one. */
export function useFound(): Loaded<Found | null> {
  const model = useModel();
  const [text] = useParam("find");
  return useAsync(async () => (text ? { text, ...(await model.stream.find(text, MAX_FOUND)) } : null), [text, model]);
}

/** Search for tasks by key, prefix or status. Enter opens the next match, Shift + Enter the previous one. */
export function FindTask({ found, onTask }: { found: Found | null; onTask: (task: number) => void }) {
  const model = useModel();
  const [text, setText] = useParam("find");
  const [item] = useParam("item");
  const [typed, setTyped] = useState(text);
  const timer = useRef(0);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const indexOf = (task: string | undefined) => (found && task ? found.tasks.indexOf(Number(task)) : -1);
  const at = indexOf(item);
  /** The step to make once the matches of the text that was just typed are there. */
  const pending = useRef(0);
  const go = async (by: number) => {
    if (typed.trim() !== (found?.text ?? "")) {
      pending.current = by;
      clearTimeout(timer.current);
      setText(typed.trim());
      return;
    }
    if (!found?.tasks.length) return;
    const size = found.tasks.length;
    // Not `at`: effects run after the paint, so the page may be older than the URL.
    const from = indexOf(model.nav.params.item);
    const task = found.tasks[from < 0 ? (by > 0 ? 0 : size - 1) : (from + by + size) % size];
    // Open it before its time is known, so that the next key goes on from here.
    onTask(task);
    const [mark] = await model.stream.marks([task]);
    if (mark && model.nav.params.item === String(task)) moveSelectionTo(model, mark);
  };
  useEffect(() => {
    const by = pending.current;
    pending.current = 0;
    if (by && found) void go(by);
  }, [found]);
  const step = (label: string, by: number, icon: "up" | "chev") => (
    <button
      type="button"
      class="btn sm ghost"
      aria-label={label}
      title={label}
      disabled={!found?.tasks.length}
      onClick={() => void go(by)}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <form
      class="findtask"
      onSubmit={(event) => {
        event.preventDefault();
        void go(1);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || !event.shiftKey) return;
        event.preventDefault();
        void go(-1);
      }}
    >
      <Search
        label="Find a task"
        value={typed}
        testid="find-task"
        onInput={(next) => {
          setTyped(next);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => setText(next.trim()), 150);
        }}
      />
      {/* Always there: a legend that wraps because of it would move the lanes. */}
      <span class="faint" aria-live="polite" data-testid="find-count">
        {found && (found.of === 0 ? "none" : at < 0 ? count(found.of) : `${count(at + 1)} of ${count(found.of)}`)}
      </span>
      {step("Previous match (Shift + Enter)", -1, "up")}
      {step("Next match (Enter)", 1, "chev")}
    </form>
  );
}
