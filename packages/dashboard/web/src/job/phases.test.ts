import { expect, test } from "vitest";
import { phases } from "./phases";

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const job = { state: "Running", created: at(0), started: at(10), ended: null, conditions: [] };
const pod = (node: string, created: number, started: number | null, uid = node) => ({
  uid, node, created: at(created), started: started === null ? null : at(started),
});
const is = (type: string, seconds: number) => ({ type, status: "True", lastTransitionTime: at(seconds) });

test.each([
  ["running", job, [pod("node-0", 10, 15)], "queued 10, starting 5, running 85"],
  ["data first", job, [pod("dataset-initializer-0", 10, 12), pod("node-0", 30, 32)], "queued 10, starting 2, data 20, running 68"],
  ["pods are gone", { ...job, state: "Complete", ended: at(50) }, [], "queued 10, running 40"],
  ["no room", { ...job, state: "Pending" }, [pod("node-0", 10, null)], "queued 100"],
  ["image is pulled", job, [pod("node-0", 10, null)], "queued 10, starting 90"],
  ["restarted", job, [pod("node-0", 40, 45, "b"), pod("node-0", 10, 15, "a")], "queued 10, starting 5, running 25, restarting 5, running 55"],
  ["stalled", { ...job, conditions: [is("Stalled", 60)] }, [pod("node-0", 10, 10)], "queued 10, running 50, stalled 40"],
  ["suspended at once", { ...job, started: null, conditions: [is("Suspended", 0)] }, [], "suspended 100"],
  ["a clock that is behind", { ...job, created: at(200) }, [], ""],
])("%s", (_, of, pods, expected) => {
  const found = phases(of, pods, 100_000);
  expect(found.map(({ name, from, to }) => `${name} ${(to - from) / 1000}`).join(", ")).toBe(expected);
});
