import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icon";

let show: (text: string) => void = () => undefined;

/** Show and announce a message for five seconds. */
export function toast(text: string): void {
  show(text);
}

export function Toasts() {
  const [items, set] = useState<{ id: number; text: string }[]>([]);
  useEffect(() => {
    let id = 0;
    show = (text) => {
      const current = ++id;
      set((now) => [...now.slice(-2), { id: current, text }]);
      setTimeout(() => set((now) => now.filter((item) => item.id !== current)), 5000);
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
