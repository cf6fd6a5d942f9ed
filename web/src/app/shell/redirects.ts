import type { Router } from "../../model/page/router";

/** URL of the sign-in page that leads back to the current page. */
export function signInHref(router: Router): string {
  return router.href(["login"], { next: location.pathname + location.search });
}

/**
 * Return the requested URL if it is on this server, otherwise `home`: a foreign URL could phish people right after sign-in.
 * Compare the parsed URL, because parsing drops tabs and turns backslashes into slashes: "/<tab>/host" is another host, too.
 */
export function safeRedirect(requested: string, home: string, origin: string): string {
  if (!requested || !URL.canParse(requested, origin)) return home;
  const target = new URL(requested, origin);
  return target.origin === origin ? target.href : home;
}
