import "../styles/tokens.css";
import "../styles/parts.css";
import "../styles/narrow.css";
import "../styles/viewer.css";
import "../styles/team.css";
import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Api, ApiError, rootPath } from "../api/server";
import type { Me } from "../api/server.gen";
import { startTheme } from "../charts/theme";
import { ParamContext } from "../model/hooks";
import { Router } from "../model/router";
import { Empty, Failed, Panel } from "../widgets/basics";
import { ClusterPage } from "./cluster";
import { Clusters } from "./clusters";
import { ComputationPage } from "./computation";
import { type Team, TeamContext, useRouter } from "./context";
import { entrance, loginHref } from "./entrance";
import { ErrorPage, Errors } from "./errors";
import { Frame } from "./frame";
import { Home } from "./home";
import { ReportPage, Reports } from "./reports";
import { Settings } from "./settings";
import { UsagePage } from "./usage";

/** Which page an address stands for, and the section it belongs to. */
function pageOf(parts: readonly string[]): [section: string, page: preact.ComponentChildren] {
  const [section = "", id, kind, item] = parts.slice(1);
  if (section === "") return ["", <Home />];
  if (section === "clusters" && !id) return [section, <Clusters />];
  if (section === "clusters" && kind === "computations" && item) return [section, <ComputationPage cluster={id} id={item} key={item} />];
  if (section === "clusters" && (!kind || kind === "report")) return [section, <ClusterPage id={id} tab={kind === "report" ? "report" : "summary"} key={id} />];
  if (section === "errors") return [section, id ? <ErrorPage fingerprint={id} key={id} /> : <Errors />];
  if (section === "reports") return [section, id ? <ReportPage number={id} key={id} /> : <Reports />];
  if (section === "usage") return [section, <UsagePage />];
  if (section === "settings") return [section, <Settings />];
  return ["none", <main class="wide"><Panel><Empty title="There is nothing here">The address may be wrong, or what was here is deleted.</Empty></Panel></main>];
}

const TITLES: Record<string, string> = { "": "Home", clusters: "Clusters", errors: "Errors", reports: "Reports", usage: "Usage", settings: "Settings" };

function Root({ router, me, account }: { router: Router; me: Me; account: string }) {
  useRouter(router);
  const api = useMemo(() => new Api(router.root, account), [account]);
  const [listeners] = useState(() => new Set<(clusters: string[]) => void>());
  useEffect(() => api.live((clusters) => listeners.forEach((tell) => tell(clusters)), () => undefined), [api]);
  const team = useMemo<Team>(
    () => ({
      api, me, router, account,
      onChange: (cluster, listener) => {
        const tell = (clusters: string[]) => {
          if (cluster === null || clusters.includes(cluster)) listener();
        };
        listeners.add(tell);
        return () => listeners.delete(tell);
      },
    }),
    [api, me],
  );
  const [section, page] = pageOf(router.parts);
  useEffect(() => {
    document.title = `${TITLES[section] ?? "Not found"} · ${account} · daskscope`;
    document.documentElement.dataset.page = section || "home";
  }, [section, account]);
  return (
    <TeamContext.Provider value={team}>
      <ParamContext.Provider value={router}>
        <Frame section={section}>{page}</Frame>
      </ParamContext.Provider>
    </TeamContext.Provider>
  );
}

function App({ router }: { router: Router }) {
  useRouter(router);
  return entrance(router) ?? <Inside router={router} />;
}

/** Everything that needs to know who asks. */
function Inside({ router }: { router: Router }) {
  const named = router.parts[0] ?? "";
  const [me, setMe] = useState<Me | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    new Api(router.root, named).get<Me>("me").then(
      (found) => {
        if (!named) {
          const first = found.account ?? found.accounts[0]?.name;
          if (first) router.go(router.href([first]));
          else setProblem("You are no member of any account yet. Ask an owner of one to add you.");
        }
        setMe(found);
      },
      (error: unknown) => {
        if (error instanceof ApiError && error.status === 401) location.assign(loginHref(router));
        else setProblem(error instanceof Error ? error.message : String(error));
      },
    );
  }, [named]);
  if (problem) return <main class="wide"><Panel><Failed message={problem} /></Panel></main>;
  if (!me || !named) return null;
  if (!me.accounts.some((a) => a.name === named)) return <main class="wide"><Panel><Empty title={`There is no account ${named}`}>Or you are no member of it. <a href={router.href([me.accounts[0]?.name ?? ""])}>Go to {me.accounts[0]?.name}</a></Empty></Panel></main>;
  return <Root router={router} me={me} account={named} key={named} />;
}

startTheme();
const root = document.getElementById("app");
if (root) render(<App router={new Router(rootPath())} />, root);
