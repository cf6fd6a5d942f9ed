import { createContext } from "preact";
import { useContext, useEffect, useReducer } from "preact/hooks";
import type { Api } from "../../api/server";
import type { Me, Scope } from "../../api/server.gen";
import type { Model } from "../../model/model";
import type { Router } from "../../model/page/router";

/** What every page of the app needs: the API, the signed-in user, the account and the router. */
export interface Team {
  api: Api;
  me: Me;
  router: Router;
  account: string;
  /** Call the listener when the cluster changes; null means any cluster. Returns a function that unsubscribes. */
  onChange: (cluster: string | null, listener: () => void) => () => void;
}

export const TeamContext = createContext<Team | null>(null);

/** The search of the app. A page that shows a run lends it the run, so that one search finds everything. */
export interface Palette {
  open: () => void;
  show: (run: Model | null) => void;
}

/** Opens another view of the run on the page, by its hash. */
export const OpenView = createContext<(hash: string) => void>(() => undefined);

export const PaletteContext = createContext<Palette | null>(null);

export function useTeam(): Team {
  const team = useContext(TeamContext);
  if (!team) throw new Error("useTeam needs a TeamContext");
  return team;
}

export function useRouter(router: Router): Router {
  const [, rerender] = useReducer((n: number) => n + 1, 0);
  useEffect(() => router.subscribe(() => rerender(0)), [router]);
  return router;
}

export function useCan(scope: Scope): boolean {
  return useTeam().me.scopes.includes(scope);
}

/** Put a name into the window title, and restore the title when the page closes. */
export function useTitle(name: string | undefined): void {
  const { account } = useTeam();
  useEffect(() => {
    if (!name) return;
    const before = document.title;
    document.title = `${name} · ${account} · daskscope`;
    return () => {
      document.title = before;
    };
  }, [name, account]);
}
