import { useEffect, useState } from "preact/hooks";
import { TOKEN_DAYS } from "../../api/limits.gen";
import { Api, ApiError } from "../../api/server";
import type { DeviceSignIn, Me } from "../../api/server.gen";
import type { Router } from "../../model/page/router";
import { Failed, Panel } from "../../widgets/basics";
import { Brand } from "../../widgets/icon";
import { Field } from "../parts/field";
import { signInHref } from "../shell/redirects";
import { SignInForm } from "./sign-in-form";

/**
 * Approve or deny the sign-in of a command line. Requires sign-in. People type the code, and see who asks before they
 * decide: a link from somebody else cannot approve anything.
 */
export function ApproveDevice({ router }: { router: Router }) {
  const api = new Api(router.root, "");
  const [me, setMe] = useState<Me | null>(null);
  const [request, setRequest] = useState<DeviceSignIn | null>(null);
  const [done, setDone] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    api.get<Me>("me").then(setMe, (error: unknown) => {
      if (error instanceof ApiError && error.status === 401) location.assign(signInHref(router));
      else setProblem(error instanceof Error ? error.message : String(error));
    });
  }, []);
  if (problem)
    return (
      <main class="signin">
        <Brand href={router.href([])} />
        <Panel>
          <Failed message={problem} />
        </Panel>
      </main>
    );
  if (!me) return null;
  if (done)
    return (
      <main class="signin" data-testid="page-sign-in">
        <Brand href={router.href([])} />
        <section class="panel" role="status">
          <h1>{done}</h1>
          <p class="muted">Go back to your terminal. You can close this page.</p>
        </section>
      </main>
    );
  if (!request)
    return (
      <SignInForm
        key="code"
        router={router}
        title="Approve sign-in"
        send={async ({ user_code }) => setRequest(await api.get<DeviceSignIn>("device", { user_code }))}
        buttons={
          <button type="submit" class="btn primary">
            Continue
          </button>
        }
        text={
          <>
            You are signed in as <b>{me.user}</b>. Enter the code that your own terminal shows. Never enter a code that
            somebody sent you: the token can act in your name.
          </>
        }
      >
        <Field label="Code" name="user_code" pattern="[A-Za-z]{4}-[A-Za-z]{4}" hint="For example ABCD-EFGH" autoFocus />
      </SignInForm>
    );
  const isWide = request.scopes.includes("accounts");
  // What the command line asked for. It is only preselected.
  const wanted = new URLSearchParams(location.search).get("account");
  const send = async ({ account, approve }: Record<string, string>) => {
    await api.send("POST", "device/decision", {
      user_code: request.user_code,
      account,
      approve: approve === "yes",
    });
    setDone(approve === "yes" ? "Approved" : "Denied");
  };
  return (
    <SignInForm
      key="decision"
      router={router}
      title="Approve sign-in"
      send={send}
      text={`A command line requests a token that can act in your name${isWide ? " in all your accounts" : ""}, as far as your role allows. It expires after ${TOKEN_DAYS} days.`}
      buttons={
        <>
          <button type="submit" class="btn primary" name="approve" value="yes">
            Approve
          </button>
          <button type="submit" class="btn" name="approve" value="no">
            Deny
          </button>
        </>
      }
    >
      <dl class="kv" data-testid="device-request">
        <dt>Code</dt>
        <dd class="mono">{request.user_code}</dd>
        <dt>IP address</dt>
        <dd class="mono">{request.address || "unknown"}</dd>
        <dt>Host name (not verified)</dt>
        <dd>{request.host || "not given"}</dd>
        <dt>Label (not verified)</dt>
        <dd>{request.label || "not given"}</dd>
        <dt>Scopes</dt>
        <dd>{request.scopes.join(", ")}</dd>
      </dl>
      <label class="field">
        {isWide ? "Default account" : "Account"}
        <select class="sel" name="account" required>
          {me.accounts.map((a) => (
            <option key={a.name} selected={a.name === wanted}>
              {a.name}
            </option>
          ))}
        </select>
      </label>
    </SignInForm>
  );
}
