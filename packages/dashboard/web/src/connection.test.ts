import { expect, test } from "vitest";
import { connection, dropped, heard, lost } from "./connection";

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
