import type { ComponentChildren } from "preact";
import { useTeam } from "./context";

/** A link inside the app that does not reload the page. */
export function Link({
  to,
  params,
  hash = "",
  children,
  ...rest
}: {
  to: readonly string[];
  params?: Record<string, string | undefined>;
  hash?: string;
  children: ComponentChildren;
  class?: string;
  title?: string;
  "aria-current"?: "page";
  testid?: string;
}) {
  const { router } = useTeam();
  const href = router.href(to, params) + (hash && `#${hash}`);
  const { testid, ...attributes } = rest;
  return (
    <a
      href={href}
      data-testid={testid}
      {...attributes}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
        event.preventDefault();
        router.go(href);
      }}
    >
      {children}
    </a>
  );
}
