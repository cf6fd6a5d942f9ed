import { keepPageSecret } from "../../api/page-secret";
import { Api, ApiError } from "../../api/server";
import type { Opened } from "../../api/server.gen";
import { Empty, Panel } from "../../widgets/basics";

/** Code of the response to a request without the secret of a server without sign-in. */
export const SECRET_NEEDED = "secret_needed";

/** Exchange the secret in the URL for a cookie and a page secret, and remove it from the address bar and the history. */
export async function openWithSecret(root: string): Promise<void> {
  const parameters = new URLSearchParams(location.search);
  const secret = parameters.get("secret");
  if (!secret) return;
  try {
    const opened = await new Api(root, "").send<Opened>("POST", "session/secret", { secret });
    keepPageSecret(opened.page_secret);
  } catch (error) {
    // Keep the secret for a reload while the server is away. A refused one is of no use.
    if (!(error instanceof ApiError) || error.status === 0 || error.status >= 500) return;
  }
  parameters.delete("secret");
  const rest = parameters.toString();
  history.replaceState(null, "", location.pathname + (rest ? `?${rest}` : "") + location.hash);
}

/** Shown to a browser that has not opened the URL with the secret. */
export function SecretNeeded() {
  return (
    <main class="wide" data-testid="secret-needed">
      <Panel>
        <Empty title="Open the URL that daskscope serve printed" snippet="cat ~/.local/share/daskscope/local.secret">
          Sign-in is off, so the URL of this server contains a secret, and other users of its machine see nothing. This
          browser does not have the secret yet. The server prints the URL when it starts. You also find the secret in
          the file local.secret in the server's data directory; add it to the URL as ?secret=…
        </Empty>
      </Panel>
    </main>
  );
}
