import { toast } from "./toast";

/** Copy a text to the clipboard, with a fallback for pages without the clipboard API (file://). */
export function copy(text: string, done: string): void {
  const fallback = () => {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.cssText = "position:fixed;opacity:0";
    document.body.append(area);
    area.select();
    const ok = document.execCommand("copy");
    area.remove();
    toast(ok ? done : "The browser blocked copying");
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => toast(done), fallback);
  else fallback();
}

export function download(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
