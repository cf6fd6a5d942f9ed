import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icon";

let show: (text: string) => void = () => undefined;

/** A sentence at the bottom right for five seconds, also announced. */
export function toast(text: string): void {
  show(text);
}

export function Toasts() {
  const [items, set] = useState<{ id: number; text: string }[]>([]);
  useEffect(() => {
    let id = 0;
    show = (text) => {
      const mine = ++id;
      set((now) => [...now.slice(-2), { id: mine, text }]);
      setTimeout(() => set((now) => now.filter((item) => item.id !== mine)), 5000);
    };
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {items.map((item) => (
        <div class="toast" key={item.id}>
          <Icon name="check" />
          {item.text}
        </div>
      ))}
    </div>
  );
}
