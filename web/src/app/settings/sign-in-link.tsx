import { copy } from "../../widgets/clipboard";

/** A link for another user, to copy. It works once. */
export function OneTimeLink({ user, url }: { user: string; url: string }) {
  return (
    <div class="callout" role="status">
      Give this link to {user} only. It works once, within an hour: <code data-testid="sign-in-link">{url}</code>{" "}
      <button type="button" class="btn sm" onClick={() => copy(url, "Link copied")}>
        Copy
      </button>
    </div>
  );
}
