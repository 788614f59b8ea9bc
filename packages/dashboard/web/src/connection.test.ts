import { expect, test } from "vitest";
import { connection, dropped, heard, lost, lostCluster, news, opened } from "./connection";

test("the page is live while all of its streams are open, and says since when one is not", () => {
  const list = {};
  const job = {};
  expect(connection().state).toBe("none");
  lost(list, 1);
  expect(connection().state).toBe("connecting");
  heard(list, 2);
  heard(job, 3);
  expect(connection()).toEqual({ state: "live", since: 3 });
  lost(job, 5);
  lost(job, 9);
  expect(connection()).toEqual({ state: "reconnecting", since: 5 });
  heard(job, 10);
  dropped(list);
  expect(connection()).toEqual({ state: "live", since: 10 });
  dropped(job);
  expect(connection().state).toBe("none");
});

test("a page that could not connect is reconnecting, and not at its first try for ever", () => {
  const list = {};
  lost(list, 1);
  expect(connection().state).toBe("connecting");
  lost(list, 4);
  lost(list, 9);
  expect(connection()).toEqual({ state: "reconnecting", since: 4 });
  opened(list, 10);
  expect(connection().state).toBe("live");
  dropped(list);
});

test("a server that has lost the cluster is not live, whatever it sends, until it has it again", () => {
  const list = {};
  lost(list, 1);
  opened(list, 2);
  expect(connection()).toEqual({ state: "live", since: 2 });
  heard(list, 3);
  opened(list, 4);
  expect(connection()).toEqual({ state: "live", since: 3 });
  lostCluster(list, 5);
  opened(list, 6);
  lostCluster(list, 7);
  news(list, 7);
  expect(connection()).toEqual({ state: "reconnecting", since: 5 });
  lost(list, 8);
  opened(list, 9);
  expect(connection()).toEqual({ state: "reconnecting", since: 5 });
  heard(list, 10);
  expect(connection()).toEqual({ state: "live", since: 10 });
  news(list, 11);
  expect(connection()).toEqual({ state: "live", since: 11 });
  dropped(list);
});
