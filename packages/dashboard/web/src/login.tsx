// Who looks at the page: the cluster that they see, or the form that asks for their token.

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, isFromAddress, logIn, logOut, request, signIn, whenSignedOut } from "./api";
import { Problem } from "./parts";
import { leave } from "./route";
import { forgetDrafts, keepDraftsOf } from "./submit/draft";

export interface Cluster {
  /** Its address, or the name that its server was given; "" where there is none. */
  cluster: string;
  /** What its users call it, such as a context; "" where that is not known. */
  name: string;
  namespace: string;
  /** Who looks; "" for a page that only one user can open. */
  user: string;
  login: "address" | "token" | "proxy";
  /** Other contexts of the kubeconfig, with the commands that open their pages. */
  others: { name: string; command: string }[];
  /** Whether all TrainJobs are shown, and not only those of some namespaces. */
  isWhole: boolean;
  hasHistory: boolean;
  /** Whether there can be sweeps that the user may see. */
  hasSweeps: boolean;
}

export interface Session {
  cluster: Cluster | null;
  /** Why nothing is shown. */
  problem: string;
  /** Whether a token is asked for, because of the problem if there is one. */
  isAsked: boolean;
  logIn(token: string): void;
  logOut(): void;
}

const ASKED = "The token in the address is not for this dashboard. Log in with your own.";

export function useSession(): Session {
  const [state, setState] = useState({ cluster: null as Cluster | null, problem: "", isAsked: false });
  function open(): void {
    request<Cluster>("GET", "/api/cluster").then(
      (cluster) => {
        if (cluster.login === "token" && isFromAddress()) ask(ASKED);
        else {
          keepDraftsOf(`${cluster.user} ${cluster.cluster}`);
          setState({ cluster, problem: "", isAsked: false });
        }
      },
      (error: unknown) => {
        const problem = error instanceof ApiError ? error.message : String(error);
        setState((before) => (before.isAsked ? before : { ...before, cluster: null, problem }));
      },
    );
  }
  function ask(problem: string): void {
    logOut();
    setState({ cluster: null, problem, isAsked: true });
  }
  useEffect(() => {
    whenSignedOut(ask);
    signIn().then(open, (error: unknown) => setState((before) => ({ ...before, problem: (error as Error).message })));
  }, []);
  return {
    ...state,
    logIn(token) {
      logIn(token);
      setState({ cluster: null, problem: "", isAsked: false });
      open();
    },
    logOut: () =>
      leave(() => {
        forgetDrafts();
        ask("");
      }),
  };
}

export function LogIn({ session }: { session: Session }) {
  const [token, setToken] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Log in";
    field.current?.focus();
  }, []);
  return (
    <main class="login">
      <h1 tabIndex={-1}>Log in</h1>
      {session.problem && <Problem>{session.problem}</Problem>}
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          session.logIn(token);
        }}
      >
        <label>
          <span>Token for the cluster</span>
          <input
            type="password"
            name="token"
            autocomplete="off"
            spellcheck={false}
            required
            ref={field}
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Log in</button>
      </form>
      <p class="quiet">
        You see what the owner of the token may see, and change what they may change. A ServiceAccount has one by{" "}
        <code>kubectl create token NAME</code>. The page keeps it until this tab is closed.
      </p>
    </main>
  );
}

export function Who({ session, cluster }: { session: Session; cluster: Cluster }) {
  if (!cluster.user) return null;
  return (
    <span class="who">
      {cluster.user}
      {!cluster.isWhole && ", in the namespaces with TrainJobs to list"}
      {cluster.login === "token" && (
        <button type="button" class="plain" onClick={session.logOut}>
          Log out
        </button>
      )}
    </span>
  );
}
