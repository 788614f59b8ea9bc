import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  type StreamHandlers,
  follow,
  fragment,
  isFromAddress,
  logIn,
  logOut,
  request,
  signIn,
  trainJobPath,
  whenSignedOut,
} from "./api";

const EVENT = "event: end\ndata: {}\n\n";
let listeners: Set<() => void>;
let page: { hidden: boolean };
let opened: number;

beforeEach(() => {
  vi.useFakeTimers();
  listeners = new Set();
  opened = 0;
  page = { hidden: false };
  vi.stubGlobal(
    "document",
    Object.assign(page, {
      addEventListener: (_: string, listener: () => void) => listeners.add(listener),
      removeEventListener: (_: string, listener: () => void) => listeners.delete(listener),
    }),
  );
  vi.stubGlobal("fetch", () => {
    opened++;
    return Promise.resolve(new Response(EVENT));
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function watched(isOver?: () => boolean) {
  const states: string[] = [];
  let events = 0;
  const handlers: StreamHandlers = {
    event: () => void events++,
    state: (problem) => void states.push(problem),
    ...(isOver && { isOver }),
  };
  return { states, stop: follow("/api/logs/a", handlers), events: () => events };
}

test("a stream that breaks is opened again, and says so", async () => {
  const { states, stop, events } = watched(() => false);
  await vi.waitFor(() => expect(states).toEqual(["", "The connection has ended; trying again."]));
  await vi.advanceTimersByTimeAsync(1000);
  await vi.waitFor(() => expect(events()).toBe(2));
  expect(opened).toBe(2);
  stop();
});

test("a stream that is over is not opened again, even when the page is seen again", async () => {
  const { states, events } = watched(() => events() > 0);
  await vi.waitFor(() => expect(listeners.size).toBe(0));
  await vi.advanceTimersByTimeAsync(60_000);
  expect([opened, events(), states]).toEqual([1, 1, [""]]);
});

test("a stream is closed while nobody sees the page", async () => {
  const { stop } = watched();
  page.hidden = true;
  for (const listener of listeners) listener();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(opened).toBe(1);
  page.hidden = false;
  for (const listener of listeners) listener();
  expect(opened).toBe(2);
  stop();
  expect(listeners.size).toBe(0);
});

test.each([
  ["the token of the address", "#token=new", "old", "new", "/?q=a"],
  ["the code of the address", "#code=once", "old", "exchanged", "/?q=a"],
  ["what the tab has kept", "", "old", "old", undefined],
  ["nothing", "", null, "", undefined],
  ["the token, which nothing can keep", "#token=new", undefined, "new", "/?q=a#token=new"],
])("a page signs in with %s", async (_, hash, kept, token, address) => {
  const storage = new Map(kept ? [["token", kept]] : []);
  const refuse = () => {
    throw new Error("SecurityError");
  };
  const getItem = kept === undefined ? refuse : (key: string) => storage.get(key) ?? null;
  const setItem = kept === undefined ? refuse : (key: string, value: string) => storage.set(key, value);
  const replaceState = vi.fn();
  vi.stubGlobal("sessionStorage", { getItem, setItem });
  vi.stubGlobal("location", { pathname: "/", search: "?q=a", hash });
  vi.stubGlobal("history", { state: null, replaceState });
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ token: "exchanged" })));
  await signIn();
  expect(fragment()).toBe(token && `#token=${token}`);
  expect(replaceState.mock.calls).toEqual(address === undefined ? [] : [[null, "", address]]);
  if (kept !== undefined) expect(storage.get("token") ?? "").toBe(token);
});

test("a token that was typed is kept for the tab, and in no link", async () => {
  const storage = new Map([["token", "of-an-address"]]);
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => storage.get(key) ?? null,
    setItem: (key: string, value: string) => storage.set(key, value),
    removeItem: (key: string) => storage.delete(key),
  });
  vi.stubGlobal("location", { pathname: "/", search: "", hash: "" });
  await signIn();
  expect(isFromAddress()).toBe(true);
  logOut();
  expect([...storage]).toEqual([]);
  logIn(" secret\n");
  expect([...storage]).toEqual([["typed", "secret"]]);
  expect(fragment()).toBe("");
  logOut();
  await signIn();
  expect([fragment(), isFromAddress()]).toEqual(["", false]);
});

test.each([
  ["asks for another login where a token can be typed", 401, "token", ["it has expired"]],
  ["says so where the address is all that logs in", 401, "address", []],
  ["is an error where something else is wrong", 403, "token", []],
])("a refused request %s", async (_, status, login, asked) => {
  const why: string[] = [];
  const sent: Headers[] = [];
  vi.stubGlobal("fetch", (_: string, options: RequestInit) => {
    sent.push(new Headers(options.headers));
    return Promise.resolve(Response.json({ error: "it has expired", login }, { status }));
  });
  logIn("secret");
  whenSignedOut((each) => why.push(each));
  await expect(request("GET", "/api/cluster")).rejects.toThrow("it has expired");
  expect(why).toEqual(asked);
  expect(sent[0]!.get("Authorization")).toBe("Bearer secret");
  expect(sent[0]!.get("X-Requested-With")).toBe("trainer-dashboard");
  await expect(request("GET", "/api/cluster")).rejects.toThrow("it has expired");
  expect(sent[1]!.get("Authorization")).toBe(asked.length ? null : "Bearer secret");
  logOut();
});

test("names are parts of a path, whatever is in them", () => {
  expect(trainJobPath({ namespace: "team-a", name: "demo" })).toBe("/api/trainjobs/team-a/demo");
  expect(trainJobPath({ namespace: "a/../b", name: "c?d#e" })).toBe("/api/trainjobs/a%2F..%2Fb/c%3Fd%23e");
});
