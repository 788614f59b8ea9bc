import { expect, test, vi } from "vitest";
import { CLUSTER_WIDE } from "./model";
import { comparePath, guardLeaving, jobPath, leave, newPath, parse, pastPath, runtimePath } from "./route";

test.each([
  ["/", { view: "list" }],
  ["/jobs", { view: "list" }],
  ["/jobs/a/b", { view: "job", namespace: "a", name: "b", tab: "overview" }],
  ["/jobs/a/b/logs", { view: "job", namespace: "a", name: "b", tab: "logs" }],
  ["/jobs/a/b/objects", { view: "job", namespace: "a", name: "b", tab: "objects" }],
  ["/jobs/%/b", { view: "list" }],
  ["/jobs/a/b/other", { view: "job", namespace: "a", name: "b", tab: "overview" }],
  ["/cluster", { view: "cluster" }],
  ["/sweeps", { view: "sweeps" }],
  ["/sweeps/a", { view: "sweeps" }],
  ["/sweeps/a/b", { view: "sweep", namespace: "a", name: "b", tab: "overview" }],
  ["/sweeps/a/b/yaml", { view: "sweep", namespace: "a", name: "b", tab: "yaml" }],
  ["/past-sweeps/a/b/c", { view: "pastSweep", namespace: "a", name: "b", uid: "c" }],
  ["/past-sweeps/a/b", { view: "list" }],
  ["/new/a/b", { view: "new", namespace: "a", name: "b" }],
  ["/new", { view: "new", namespace: "", name: "" }],
  ["/compare", { view: "compare" }],
  ["/history", { view: "history" }],
  ["/history/a/b", { view: "history" }],
  ["/history/a/b/u", { view: "past", namespace: "a", name: "b", uid: "u", tab: "overview" }],
  ["/history/a/b/u/logs", { view: "past", namespace: "a", name: "b", uid: "u", tab: "logs" }],
  ["/history/a/b/u/yaml", { view: "past", namespace: "a", name: "b", uid: "u", tab: "overview" }],
  ["/runtimes", { view: "runtimes" }],
  ["/runtimes/a", { view: "runtimes" }],
  ["/runtimes/a/b", { view: "runtime", kind: "TrainingRuntime", namespace: "a", name: "b" }],
  ["/clusterruntimes/b", { view: "runtime", kind: CLUSTER_WIDE, namespace: "", name: "b" }],
])("%s", (path, route) => {
  expect(parse(path)).toEqual(route);
});

test("a path comes back as what it was made of", () => {
  expect(parse(jobPath("team-a", "demo", "yaml"))).toEqual({ view: "job", namespace: "team-a", name: "demo", tab: "yaml" });
});

test("the path of a training of the history comes back, too", () => {
  const id = { namespace: "a", name: "b?c", uid: "u" };
  expect(parse(pastPath(id, "objects"))).toEqual({ view: "past", ...id, tab: "objects" });
});

test.each([
  { kind: CLUSTER_WIDE, namespace: "", name: "torch" },
  { kind: "TrainingRuntime", namespace: "team-a", name: "a?b" },
])("the path of a runtime comes back, too", (runtime) => {
  expect(parse(runtimePath(runtime))).toEqual({ view: "runtime", ...runtime });
});

test("the path of a comparison names its TrainJobs", () => {
  expect(comparePath([{ namespace: "a", name: "b" }, { namespace: "c", name: "d&e" }])).toBe("/compare?job=a%2Fb&job=c%2Fd%26e");
  expect(comparePath([])).toBe("/compare");
  expect(comparePath([{ namespace: "a", name: "b" }], [{ namespace: "c", name: "d", uid: "u" }])).toBe("/compare?job=a%2Fb&past=c%2Fd%2Fu");
});

test("the path of a new TrainJob names its runtime", () => {
  expect(newPath()).toBe("/new");
  expect(newPath({ kind: CLUSTER_WIDE, namespace: "", name: "torch" })).toBe("/new?runtime=torch&kind=ClusterTrainingRuntime");
  expect(newPath({ kind: "TrainingRuntime", namespace: "a", name: "b" })).toBe("/new?runtime=b&kind=TrainingRuntime&namespace=a");
});

test("what ends the page, such as a log out, asks whoever has something to lose", () => {
  vi.stubGlobal("location", { href: "http://a/new" });
  const questions: (() => void)[] = [];
  const left = vi.fn();
  const release = guardLeaving((proceed) => questions.push(proceed));
  leave(left);
  expect(left).not.toHaveBeenCalled();
  questions[0]!();
  expect(left).toHaveBeenCalledOnce();
  release();
  leave(left);
  expect([left.mock.calls.length, questions.length]).toEqual([2, 1]);
  vi.unstubAllGlobals();
});
