import { expect, test } from "vitest";
import { parse } from "../route";
import { chosen, namespaceIn, within } from "./namespaces";

test.each([
  ["/", "", ""],
  ["/", "q=a&namespace=vision", "vision"],
  ["/history", "namespace=vision", "vision"],
  ["/cluster", "namespace=vision", "vision"],
  ["/sweeps", "namespace=vision", "vision"],
  ["/sweeps/vision/digits", "namespace=vision", undefined],
  ["/runtimes", "namespace=vision", "vision"],
  ["/jobs/vision/resnet", "namespace=vision", undefined],
  ["/compare", "", undefined],
])("the namespace of %s?%s is %j", (path, query, namespace) => {
  expect(namespaceIn(parse(path), new URLSearchParams(query))).toBe(namespace);
});

test.each([
  ["/", "q=a&sort=name", "vision", "/?q=a&sort=name&namespace=vision"],
  ["/", "q=a&namespace=vision", "", "/?q=a"],
  ["/cluster", "namespace=vision", "", "/cluster"],
  ["/cluster", "", "speech", "/cluster?namespace=speech"],
  ["/jobs/vision/resnet", "x=log", "speech", "/?namespace=speech"],
  ["/compare", "job=vision%2Fresnet", "", "/"],
])("on %s?%s the choice of %j leads to %s", (path, query, namespace, address) => {
  expect(chosen(parse(path), path, new URLSearchParams(query), namespace)).toBe(address);
});

test("links between the views keep the namespace", () => {
  expect(within("/cluster", "vision")).toBe("/cluster?namespace=vision");
  expect(within("/cluster", "")).toBe("/cluster");
});
