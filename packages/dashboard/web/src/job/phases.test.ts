import { expect, test } from "vitest";
import { phases } from "./phases";

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const job = { state: "Running", created: at(0), started: at(10), ended: null, conditions: [] };
const pod = (node: string, created: number, started: number | null, uid = node) => ({
  uid, node, created: at(created), started: started === null ? null : at(started),
});
const again = (of: ReturnType<typeof pod>, stopped: number, restarted: number | null) => ({
  ...of, stopped: at(stopped), restarted: restarted === null ? null : at(restarted),
});
const is = (type: string, seconds: number, status = "True") => ({ type, status, lastTransitionTime: at(seconds) });
const not = (type: string, seconds: number) => is(type, seconds, "False");

test.each([
  ["running", job, [pod("node-0", 10, 15)], "queued 10, starting 5, running 85"],
  ["data first", job, [pod("dataset-initializer-0", 10, 12), pod("node-0", 30, 32)], "queued 10, starting 2, data 20, running 68"],
  ["pods are gone", { ...job, state: "Complete", ended: at(50) }, [], "queued 10, running 40"],
  ["no room", { ...job, state: "Pending" }, [pod("node-0", 10, null)], "queued 100"],
  ["no pod yet", { ...job, state: "Created" }, [], "queued 10, starting 90"],
  ["data is fetched", { ...job, state: "Created" }, [pod("model-initializer-0", 10, 12)], "queued 10, starting 2, data 88"],
  ["pods before their status", job, [pod("node-0", 8, 9)], "queued 10, running 90"],
  ["held by a queue", { ...job, conditions: [not("Pending", 60)] }, [pod("node-0", 61, 65)], "queued 61, starting 4, running 35"],
  ["made late", job, [pod("node-0", 60, null)], "queued 60, starting 40"],
  ["no node at first", { ...job, conditions: [not("Pending", 30)] }, [pod("node-0", 10, 35)], "queued 30, starting 5, running 65"],
  ["no node for one that was made anew", { ...job, conditions: [not("Pending", 50)] }, [pod("node-0", 40, 55, "b"), pod("node-0", 10, 15, "a")], "queued 10, starting 5, running 25, restarting 15, running 45"],
  ["image is pulled", job, [pod("node-0", 10, null)], "queued 10, starting 90"],
  ["restarted", job, [pod("node-0", 40, 45, "b"), pod("node-0", 10, 15, "a")], "queued 10, starting 5, running 25, restarting 5, running 55"],
  ["stalled", { ...job, conditions: [is("Stalled", 60)] }, [pod("node-0", 10, 10)], "queued 10, running 50, stalled 40"],
  ["stops", { ...job, state: "Stopping", conditions: [is("Stopping", 60)] }, [pod("node-0", 10, 10)], "queued 10, running 50, stopping 40"],
  ["is suspended and stops", { ...job, state: "Stopping", conditions: [is("Suspended", 60), is("Stopping", 60)] }, [pod("node-0", 10, 10)], "queued 10, running 50, stopping 40"],
  ["was stalled", { ...job, conditions: [not("Stalled", 60)] }, [pod("node-0", 10, 10)], "queued 10, running 90"],
  ["restarted in place", job, [again(pod("node-0", 10, 15), 40, 45), pod("node-1", 10, 15)], "queued 10, starting 5, running 25, restarting 5, running 55"],
  ["waits to restart in place", { ...job, conditions: [is("Restarting", 41)] }, [again(pod("node-0", 10, 15), 40, null)], "queued 10, starting 5, running 25, restarting 60"],
  ["one pod made anew, the old one gone", { ...job, conditions: [not("Restarting", 46)] }, [pod("node-0", 40, 45), pod("node-1", 10, 15)], "queued 10, starting 5, running 25, restarting 5, running 55"],
  ["all pods made anew, the old ones gone", { ...job, conditions: [not("Restarting", 46)] }, [pod("node-0", 40, 45)], "queued 10, running 30, restarting 5, running 55"],
  ["all made anew, with data", { ...job, conditions: [not("Restarting", 46)] }, [pod("dataset-initializer-0", 10, 12), pod("node-0", 40, 45)], "queued 10, running 30, restarting 5, running 55"],
  ["all are made anew", { ...job, state: "Restarting", conditions: [is("Restarting", 40)] }, [pod("node-0", 41, null)], "queued 10, running 30, restarting 60"],
  ["ended with its restart", { ...job, state: "Failed", ended: at(50), conditions: [not("Restarting", 50)] }, [pod("node-0", 40, 45)], "queued 10, running 30, restarting 5, running 5"],
  ["grown after a restart", { ...job, conditions: [not("Restarting", 46)] }, [pod("node-0", 40, 45), pod("node-1", 70, 72)], "queued 10, running 30, restarting 5, running 55"],
  ["grown", job, [pod("node-0", 10, 15), pod("node-1", 70, 72)], "queued 10, starting 5, running 85"],
  ["suspended at once", { ...job, started: null, conditions: [is("Suspended", 0)] }, [], "suspended 100"],
  ["suspended at first", { ...job, conditions: [not("Suspended", 10)] }, [pod("node-0", 10, 15)], "suspended 10, starting 5, running 85"],
  ["suspended", { ...job, state: "Suspended", conditions: [is("Suspended", 60)] }, [], "queued 10, running 50, suspended 40"],
  ["resumed", { ...job, conditions: [not("Suspended", 60)] }, [pod("node-0", 61, 65)], "queued 10, earlier 50, starting 5, running 35"],
  ["resumed beside a pod that goes", { ...job, conditions: [not("Suspended", 60)] }, [pod("node-0", 61, 65), pod("node-0", 10, 15, "old")], "queued 10, earlier 50, starting 5, running 35"],
  ["resumed without room", { ...job, state: "Pending", conditions: [not("Suspended", 60)] }, [pod("node-0", 61, null)], "queued 10, earlier 50, queued 40"],
  ["resumed after a restart", { ...job, conditions: [not("Suspended", 60), not("Restarting", 55)] }, [pod("node-0", 61, 65)], "queued 10, earlier 50, starting 5, running 35"],
  ["restarted after it was resumed", { ...job, conditions: [not("Suspended", 30), not("Restarting", 66)] }, [pod("node-0", 61, 65)], "queued 10, earlier 20, running 31, restarting 4, running 35"],
  ["a clock that is behind", { ...job, created: at(200) }, [], ""],
])("%s", (_, of, pods, expected) => {
  const found = phases(of, pods, 100_000);
  expect(found.map(({ name, from, to }) => `${name} ${(to - from) / 1000}`).join(", ")).toBe(expected);
});
