import "./styles";
import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { rootPath } from "../api/page-secret";
import { Api, ApiError } from "../api/server";
import type { Me } from "../api/server.gen";
import { startTheme } from "../charts/theme";
import { ParamContext } from "../model/page/hooks";
import { Router } from "../model/page/router";
import { Empty, Failed, Panel } from "../widgets/basics";
import { ErrorPage } from "./errors/error";
import { ErrorGroups } from "./errors/errors";
import { Home } from "./home/home";
import { ReportPage } from "./reports/report";
import { Reports } from "./reports/reports";
import { ClusterPage } from "./run/cluster";
import { ComputationPage } from "./run/computation";
import { Runs } from "./runs/runs";
import { AppShell } from "./shell/app-shell";
import { type Team, TeamContext, useRouter } from "./shell/context";
import { Loaded, Missing } from "./shell/loaded";
import { signInHref } from "./shell/redirects";
import { useResource } from "./shell/resources";
import { openWithSecret, SECRET_NEEDED, SecretNeeded } from "./sign-in/local-secret";
import { publicPage } from "./sign-in/public-pages";
import { UsagePage } from "./usage/usage";

/** Return the page of a path and the section it belongs to. */
function pageOf(parts: readonly string[]): [section: string, page: preact.ComponentChildren] {
  const [section = "", id, kind, item, part] = parts.slice(1);
  if (section === "") return ["", <Home />];
  if (section === "runs") return ["runs", <Runs />];
  if (section === "clusters" && kind === "computations" && item && part === "what-if")
    return ["runs", <WhatIf cluster={id} id={item} key={item} />];
  if (section === "clusters" && kind === "computations" && item)
    return ["runs", <ComputationPage cluster={id} id={item} key={`${id} ${item}`} />];
  if (section === "clusters" && id && !kind) return ["runs", <ClusterPage id={id} key={id} />];
  if (section === "compare") return ["runs", <CompareSection />];
  if (section === "errors") return [section, id ? <ErrorPage fingerprint={id} key={id} /> : <ErrorGroups />];
  if (section === "reports") return ["runs", id ? <ReportPage number={id} key={id} /> : <Reports />];
  if (section === "usage") return [section, <UsagePage />];
  if (section === "explore") return [section, <ExplorePage />];
  if (section === "settings") return [section, <SettingsPage />];
  return ["none", <NotFound />];
}

/** A page that does not exist. */
function NotFound() {
  return (
    <main class="wide" data-testid="page-none">
      <Missing message="Page not found. The URL may be wrong, or the item was deleted." />
    </main>
  );
}

/** Settings, which have their own file: they are the largest page, and the one that people open least. */
function SettingsPage() {
  const page = useResource(() => import("./settings/settings"), []);
  return <Loaded from={page}>{({ Settings }) => <Settings />}</Loaded>;
}

/** Explore has its own file, too: most people never open it. */
function ExplorePage() {
  const page = useResource(() => import("./explore/explore"), []);
  return <Loaded from={page}>{({ Explore }) => <Explore />}</Loaded>;
}

/** Comparisons, which have their own file as well. */
function CompareSection() {
  const page = useResource(() => import("./compare/compare"), []);
  return <Loaded from={page}>{({ ComparePage }) => <ComparePage />}</Loaded>;
}

/** Predictions, with a file of their own: they need the code of plots, and few people open them. */
function WhatIf(props: { cluster: string; id: string }) {
  const page = useResource(() => import("./run/what-if"), []);
  return <Loaded from={page}>{({ WhatIfPage }) => <WhatIfPage {...props} />}</Loaded>;
}

const TITLES: Record<string, string> = {
  "": "Home",
  runs: "Runs",
  errors: "Errors",
  usage: "Usage",
  explore: "Explore",
  settings: "Settings",
};

function Root({ router, me, account }: { router: Router; me: Me; account: string }) {
  useRouter(router);
  const api = useMemo(() => new Api(router.root, account), [account]);
  const [listeners] = useState(() => new Set<(clusters: string[] | null) => void>());
  const wasOpen = useRef(false);
  useEffect(
    () =>
      api.live(
        (clusters) => {
          for (const notify of listeners) notify(clusters);
        },
        (open) => {
          // What changed while the stream was interrupted was not reported.
          if (open && wasOpen.current) for (const notify of listeners) notify(null);
          wasOpen.current ||= open;
        },
      ),
    [api],
  );
  const team = useMemo<Team>(
    () => ({
      api,
      me,
      router,
      account,
      onChange: (cluster, listener) => {
        const notify = (clusters: string[] | null) => {
          if (cluster === null || clusters === null || clusters.includes(cluster)) listener();
        };
        listeners.add(notify);
        return () => listeners.delete(notify);
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
        <AppShell section={section}>{page}</AppShell>
      </ParamContext.Provider>
    </TeamContext.Provider>
  );
}

function App({ router }: { router: Router }) {
  useRouter(router);
  return publicPage(router) ?? <SignedIn router={router} />;
}

/** Pages that need a signed-in user. */
function SignedIn({ router }: { router: Router }) {
  const named = router.parts[0] ?? "";
  const [me, setMe] = useState<Me | null>(null);
  const [problem, setProblem] = useState("");
  const [needsSecret, setNeedsSecret] = useState(false);
  useEffect(() => {
    new Api(router.root, named).get<Me>("me").then(
      (found) => {
        if (!named) {
          const first = found.account ?? found.accounts[0]?.name;
          if (first) router.go(router.href([first]));
          else setProblem("You are not a member of an account yet. Ask an account owner to add you.");
        }
        setMe(found);
      },
      (error: unknown) => {
        if (error instanceof ApiError && error.code === SECRET_NEEDED) setNeedsSecret(true);
        else if (error instanceof ApiError && error.status === 401) location.assign(signInHref(router));
        else setProblem(error instanceof Error ? error.message : String(error));
      },
    );
  }, [named]);
  if (needsSecret) return <SecretNeeded />;
  if (problem)
    return (
      <main class="wide">
        <Panel>
          <Failed message={problem} />
        </Panel>
      </main>
    );
  if (!me || !named) return null;
  if (!me.accounts.some((a) => a.name === named))
    return (
      <main class="wide">
        <Panel>
          <Empty title={`This page is in the account ${named}`}>
            You are signed in as {me.user}, who is not a member of it, or it does not exist. Ask an owner of {named} to
            add you. Your accounts:{" "}
            {me.accounts.map((a, i) => (
              <span key={a.name}>
                {i > 0 && ", "}
                <a href={router.href([a.name])}>{a.name}</a>
              </span>
            ))}
          </Empty>
        </Panel>
      </main>
    );
  return <Root router={router} me={me} account={named} key={named} />;
}

startTheme();
const root = document.getElementById("app");
if (root) void openWithSecret(rootPath()).then(() => render(<App router={new Router(rootPath())} />, root));
