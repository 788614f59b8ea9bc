// Requests to the server of this page. The token comes in the fragment of the address, or is typed; it is kept for the tab.

import { dropped, heard as heardCluster, lost, lostCluster, news, opened } from "./connection";
import type { ClusterHeard } from "./model";
import { EventParser, type ServerEvent } from "./sse";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Where the tab keeps a token: one of the address is for links as well, one that was typed is not. */
type Place = "token" | "typed";

let token = "";
let place: Place = "token";
let onSignedOut: (why: string) => void = () => {};

/** Call a function when the server does not know who asks, and a token can be typed. */
export function whenSignedOut(listener: (why: string) => void): void {
  onSignedOut = listener;
}

/** Use a token that was typed, as long as the tab is open. */
export function logIn(typed: string): void {
  token = typed.trim();
  place = "typed";
  store();
}

/** Forget the token. */
export function logOut(): void {
  token = "";
  for (const each of ["token", "typed"] satisfies Place[]) {
    try {
      sessionStorage.removeItem(each);
    } catch {
      // It was not stored either.
    }
  }
}

/** Whether the token came with the address: whoever gives the address to somebody could log them in as another. */
export function isFromAddress(): boolean {
  return token !== "" && place === "token";
}

/**
 * Read the token from the address, or exchange the code that the browser was opened with for it. The address bar does
 * not keep it, unless the browser stores nothing: then it is needed there when the page is loaded again.
 */
export async function signIn(): Promise<void> {
  const given = new URLSearchParams(location.hash.slice(1));
  const code = given.get("code");
  place = "token";
  token = given.get("token") || (code ? await exchange(code) : stored("token"));
  if (!token) {
    token = stored("typed");
    place = "typed";
  }
  if (!location.hash) return;
  history.replaceState(history.state, "", `${location.pathname}${location.search}${store() ? "" : fragment()}`);
}

async function exchange(code: string): Promise<string> {
  const answer = await send("POST", "/api/session", undefined, code);
  return ((await answer.json()) as { token: string }).token;
}

function stored(at: Place): string {
  try {
    return sessionStorage.getItem(at) ?? "";
  } catch {
    return "";
  }
}

/** Store the token for this tab; false where the browser refuses to. */
function store(): boolean {
  try {
    sessionStorage.setItem(place, token);
    return true;
  } catch {
    return false;
  }
}

/** What links end with, so that they also work in another tab. */
export function fragment(): string {
  return isFromAddress() ? `#token=${token}` : "";
}

/** The path of the API for a TrainJob. */
export function trainJobPath({ namespace, name }: { namespace: string; name: string }): string {
  return `/api/trainjobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

/** The path of the API for a sweep. */
export function sweepApiPath({ namespace, name }: { namespace: string; name: string }): string {
  return `/api/sweeps/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

export async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await send(method, path, body, token, signal);
  return (await answer.json()) as T;
}

async function send(method: string, path: string, body?: unknown, credential = token, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers: {
        // No page of another origin can send it, also where a proxy knows the user by what browsers send by themselves.
        "X-Requested-With": "trainer-dashboard",
        ...(credential && { Authorization: `Bearer ${credential}` }),
      },
      cache: "no-store",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, place === "typed" ? "The dashboard does not answer." : "The dashboard does not answer. Is `trainer dashboard` still running?");
  }
  if (answer.ok) return answer;
  let message = `${answer.status} ${answer.statusText}`;
  try {
    const refusal = (await answer.json()) as { error: string; login?: string };
    message = refusal.error;
    if (answer.status === 401 && refusal.login === "token" && credential === token) {
      logOut();
      onSignedOut(credential && message);
    }
  } catch {
    // Not ours: the status has to do.
  }
  throw new ApiError(answer.status, message);
}

const PAUSE = 1000;
const LONGEST_PAUSE = 10_000;
const SILENCE = 40_000;

/** Remember what an event says of the cluster. */
function note(line: object, { name, data }: ServerEvent): void {
  if (name !== "heard" && name !== "problem") return news(line);
  const { text, seconds } = data as ClusterHeard;
  const when = Date.now() - seconds * 1000;
  if (text) lostCluster(line, when);
  else heardCluster(line, when);
}

export interface StreamHandlers {
  event(event: ServerEvent): void;
  /** Called when the stream opens ("") and when it breaks, with the reason. */
  state(problem: string): void;
  /** Whether nothing more is to come, so that a stream that ends has not broken. */
  isOver?(): boolean;
}

/**
 * Follow a stream until the returned function is called, or it is over. It is opened again when it breaks, and closed
 * while nobody sees the page: a browser has six connections to a server for all of its tabs.
 */
export function follow(path: string, handlers: StreamHandlers): () => void {
  let isClosed = false;
  let attempt = 0;
  let controller: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const line = {};

  async function open(): Promise<void> {
    const own = (controller = new AbortController());
    lost(line);
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => own.abort(), SILENCE);
    };
    try {
      heard();
      const answer = await send("GET", path, undefined, token, own.signal);
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      handlers.state("");
      opened(line);
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        heard();
        attempt = 0;
        for (const event of parser.take(value)) {
          if (own !== controller || isClosed) return;
          note(line, event);
          handlers.event(event);
        }
      }
      if (own === controller) retry("The connection has ended; trying again.");
    } catch (error) {
      if (own !== controller) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) {
        dropped(line);
        handlers.state(error.message);
        return;
      }
      retry(error instanceof ApiError ? error.message : "The connection is broken; trying again.");
    } finally {
      clearTimeout(watchdog);
    }
  }

  function retry(problem: string): void {
    if (handlers.isOver?.()) close();
    if (isClosed || document.hidden) return;
    lost(line);
    handlers.state(problem);
    timer = setTimeout(() => void open(), Math.min(PAUSE * 2 ** attempt++, LONGEST_PAUSE));
  }

  function stop(): void {
    clearTimeout(timer);
    const own = controller;
    controller = undefined;
    dropped(line);
    own?.abort();
  }

  function onVisibility(): void {
    stop();
    if (!document.hidden) void open();
  }

  function close(): void {
    isClosed = true;
    document.removeEventListener("visibilitychange", onVisibility);
    stop();
  }

  document.addEventListener("visibilitychange", onVisibility);
  if (!document.hidden) void open();
  return close;
}
