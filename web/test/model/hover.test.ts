import { afterEach, expect, test, vi } from "vitest";
import { onHover, setHover } from "../../src/model/page/hover";

afterEach(() => setHover(null));

test("all listeners get the hovered time", () => {
  const [a, b] = [vi.fn(), vi.fn()];
  const stops = [onHover(a), onHover(b)];
  setHover(5);
  expect(a).toHaveBeenCalledExactlyOnceWith(5);
  expect(b).toHaveBeenCalledExactlyOnceWith(5);
  for (const stop of stops) stop();
});

test("the same time again is not announced", () => {
  const listener = vi.fn();
  const stop = onHover(listener);
  setHover(5);
  setHover(5);
  setHover(null);
  setHover(null);
  expect(listener.mock.calls).toEqual([[5], [null]]);
  stop();
});

test("zero is a time", () => {
  const listener = vi.fn();
  const stop = onHover(listener);
  setHover(0);
  expect(listener).toHaveBeenCalledWith(0);
  stop();
});

test("a stopped listener is not called", () => {
  const listener = vi.fn();
  onHover(listener)();
  setHover(7);
  expect(listener).not.toHaveBeenCalled();
});
