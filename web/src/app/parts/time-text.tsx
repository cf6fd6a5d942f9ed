import { ago, duration, moment } from "../../model/text/format";
import { useNow } from "../shell/use-time";

const us = (iso: string) => Date.parse(iso) * 1000;

/** A relative time like "2 h ago", with the absolute time on hover. */
export function Ago({
  at,
  never = "not recorded",
  now: justNow = "now",
}: {
  at: string | null;
  never?: string;
  now?: string;
}) {
  const now = useNow(at ? Date.parse(at) : 0);
  if (!at) return <span class="faint">{never}</span>;
  return (
    <time dateTime={at} title={moment(us(at))}>
      {ago(now * 1000 - us(at)).replace(/^now$/, justNow)}
    </time>
  );
}

/** The absolute time to the minute; empty if unknown. */
export function minute(at: string | null): string {
  return at ? `${at.slice(0, 16).replace("T", " ")} UTC` : "";
}

export function seconds(s: number): string {
  return duration(s * 1e6);
}
