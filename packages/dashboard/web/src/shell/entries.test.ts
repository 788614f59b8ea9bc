import { expect, test } from "vitest";
import { type Entry, OFFERED, matching } from "./entries";

function entry(group: Entry["group"], title: string, detail = ""): Entry {
  return { key: `${group} ${title}`, group, title, detail, run: () => undefined };
}

const ENTRIES = [
  entry("Pages", "Cluster", "page"),
  entry("Actions", "Theme: dark"),
  entry("TrainJobs", "a-resnet", "vision Running"),
  entry("TrainJobs", "resnet", "vision Failed"),
];

test.each([
  ["", ["Cluster", "Theme: dark", "a-resnet", "resnet"]],
  ["RES", ["resnet", "a-resnet"]],
  ["failed resnet", ["resnet"]],
  ["page", ["Cluster"]],
  ["none", []],
])("%j finds %j", (search, titles) => {
  expect(matching(ENTRIES, search).map(({ title }) => title)).toEqual(titles);
});

test("a palette of thousands of TrainJobs offers some", () => {
  const many = Array.from({ length: 3000 }, (_, at) => entry("TrainJobs", `job-${at}`));
  expect(matching(many, "job")).toHaveLength(OFFERED);
});
