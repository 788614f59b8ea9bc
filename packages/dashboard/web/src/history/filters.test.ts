import { expect, test } from "vitest";
import { read, write } from "./filters";

test.each(["/history", "/history?q=a+b", "/history?q=%3Cb%3E&namespace=team&state=Failed&deleted=true"])("%s is read as it was written", (path) => {
  expect(write(read(new URLSearchParams(path.split("?")[1] ?? "")))).toBe(path);
});

test("what is not known is left out", () => {
  expect(write(read(new URLSearchParams("sort=name&deleted=maybe")))).toBe("/history");
});
