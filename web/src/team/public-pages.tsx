import type { Router } from "../model/router";
import { ApproveDevice } from "./approve-device";
import { Setup } from "./setup";
import { SignIn } from "./sign-in";

/** Pages that need no sign-in. Their names are reserved: no account can use them. */
export function publicPage(router: Router): preact.ComponentChild {
  if (router.parts.length !== 1) return null;
  if (router.parts[0] === "login") return <SignIn router={router} />;
  if (router.parts[0] === "setup") return <Setup router={router} />;
  if (router.parts[0] === "device") return <ApproveDevice router={router} />;
  return null;
}
