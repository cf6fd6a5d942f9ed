/**
 * The secret of this browser's session. Cookies go to every port of a host, so the server accepts a session only together
 * with this secret, which local storage keeps for one scheme, host and port.
 */

/** Path prefix behind a reverse proxy; empty without one. */
export function rootPath(): string {
  return document.querySelector('meta[name="daskscope-root"]')?.getAttribute("content") ?? "";
}

const key = () => `daskscope-page:${rootPath()}`;

export function keepPageSecret(secret: string): void {
  localStorage.setItem(key(), secret);
}

export function forgetPageSecret(): void {
  localStorage.removeItem(key());
}

/** Headers that prove that a request comes from this page. */
export function pageHeaders(): Record<string, string> {
  try {
    const secret = localStorage.getItem(key());
    return secret ? { "Daskscope-Page": secret } : {};
  } catch {
    // A browser can forbid storage, and a report opened from a file needs none.
    return {};
  }
}
