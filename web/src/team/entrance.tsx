import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Api, ApiError } from "../api/server";
import type { Me } from "../api/server.gen";
import type { Router } from "../model/router";
import { Failed, Panel } from "../widgets/basics";
import { Brand } from "../widgets/icon";
import { Field, fieldsOf } from "./field";

/** The pages on which people say who they are; no account can have one of these names. */
export function entrance(router: Router): preact.ComponentChild {
  if (router.parts.length !== 1) return null;
  if (router.parts[0] === "login") return <Login router={router} />;
  if (router.parts[0] === "setup") return <Setup router={router} />;
  if (router.parts[0] === "device") return <Device router={router} />;
  return null;
}

/** Where somebody goes who is not logged in, and comes back from. */
export function loginHref(router: Router): string {
  return router.href(["login"], { next: location.pathname + location.search });
}

/**
 * Only an address of this server: another one would get people right after they logged in. Compared once it is parsed, because
 * parsing drops tabs and turns backslashes: "/<tab>/host" is another host, too.
 */
export function following(asked: string, home: string, origin: string): string {
  if (!asked || !URL.canParse(asked, origin)) return home;
  const target = new URL(asked, origin);
  return target.origin === origin ? target.href : home;
}

interface FormProps {
  router: Router;
  title: string;
  text?: ComponentChildren;
  send: (fields: Record<string, string>) => Promise<void>;
  buttons: ComponentChildren;
  children?: ComponentChildren;
}

/** One panel in the middle, with fields, buttons, and what went wrong. */
function Form({ router, title, text, send, buttons, children }: FormProps) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = `${title} · daskscope`;
    document.documentElement.dataset.page = "entrance";
  }, [title]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    send(fieldsOf(event)).catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error))).finally(() => setBusy(false));
  };
  return (
    <main class="entrance" data-testid="page-entrance">
      <Brand href={router.href([])} />
      <form class="panel" onSubmit={submit} aria-busy={busy}>
        <h1>{title}</h1>
        {text && <p class="muted">{text}</p>}
        {children}
        {problem && <p class="inline-err" role="alert">{problem}</p>}
        <fieldset class="buttons" disabled={busy}>{buttons}</fieldset>
      </form>
    </main>
  );
}

function Login({ router }: { router: Router }) {
  const send = async ({ user, password }: Record<string, string>) => {
    await new Api(router.root, "").send("POST", "session", { user, password });
    location.assign(following(router.params.next ?? "", router.href([]), location.origin));
  };
  return (
    <Form router={router} title="Log in" send={send} buttons={<button type="submit" class="btn primary">Log in</button>}>
      <Field label="Name" name="user" complete="username" first />
      <Field label="Password" name="password" secret complete="current-password" />
      <small class="faint">No password, or forgotten? Whoever runs this server makes users with <code>daskscope user</code>.</small>
    </Form>
  );
}

/** The first user and account, with the secret in the link that the server printed. */
function Setup({ router }: { router: Router }) {
  const secret = location.hash.slice(1);
  const send = async ({ user, password, team }: Record<string, string>) => {
    const name = team ?? "";
    await new Api(router.root, "").send("POST", "setup", { secret, user, password, team: name });
    location.assign(router.href([name]));
  };
  if (!secret) return <main class="entrance"><Brand href={router.href([])} /><Panel><Failed message="This address lacks its secret. Open the whole link that the server printed when it first started." /></Panel></main>;
  return (
    <Form router={router} title="Set up" text="This server is new. Make its first user, who may do everything, and the first account." send={send} buttons={<button type="submit" class="btn primary">Set up</button>}>
      <Field label="Your name" name="user" complete="username" hint="Lower-case letters, digits and hyphens" first />
      <Field label="Password" name="password" secret complete="new-password" least={10} hint="Ten characters or more" />
      <Field label="Name of your team" name="team" hint="Lower-case letters, digits and hyphens: it stands in every address, as in /team/clusters" />
    </Form>
  );
}

interface Asked {
  user_code: string;
  label: string;
}

/** Somebody's command line asks for a token; whoever is not logged in does that first. */
function Device({ router }: { router: Router }) {
  const api = new Api(router.root, "");
  const [me, setMe] = useState<Me | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [done, setDone] = useState("");
  const [problem, setProblem] = useState("");
  const code = router.params.code ?? "";
  useEffect(() => {
    api.get<Me>("me").then(setMe, (error: unknown) => {
      if (error instanceof ApiError && error.status === 401) location.assign(loginHref(router));
      else setProblem(error instanceof Error ? error.message : String(error));
    });
    // What a code was made for is a help; without it the code can still be confirmed.
    if (code) api.get<Asked>("device", { user_code: code }).then(setAsked, () => undefined);
  }, []);
  if (problem) return <main class="entrance"><Brand href={router.href([])} /><Panel><Failed message={problem} /></Panel></main>;
  if (!me) return null;
  if (done) return <main class="entrance" data-testid="page-entrance"><Brand href={router.href([])} /><section class="panel" role="status"><h1>{done}</h1><p class="muted">Go back to your terminal; this page can be closed.</p></section></main>;
  const send = async ({ user_code, account, approve }: Record<string, string>) => {
    await api.send("POST", "device/decision", { user_code, account, approve: approve === "yes" });
    setDone(approve === "yes" ? "Confirmed" : "Denied");
  };
  const buttons = (
    <>
      <button type="submit" class="btn primary" name="approve" value="yes">Confirm</button>
      <button type="submit" class="btn" name="approve" value="no">Deny</button>
    </>
  );
  return (
    <Form
      router={router} title="Confirm a login" send={send} buttons={buttons}
      text={<>You are <b>{me.user}</b>. {asked?.label && <><b>{asked.label}</b> asks for a token. </>}Confirm only a code that your own terminal shows: whoever has it can act in your name.</>}
    >
      <Field label="Code" name="user_code" value={code} pattern="[A-Za-z]{4}-[A-Za-z]{4}" hint="As in ABCD-EFGH" />
      <label class="field">
        Account
        <select class="sel" name="account" required>{me.accounts.map((a) => <option key={a.name}>{a.name}</option>)}</select>
      </label>
    </Form>
  );
}
