import { expect, test } from "vitest";
import { EventParser } from "./sse";

test("events come whole, however they are cut", () => {
  const text = 'event: rows\ndata: {"all":[]}\n\n:\n\nevent: gone\ndata: {}\n\n';
  for (let cut = 0; cut <= text.length; cut++) {
    const parser = new EventParser();
    const events = [...parser.take(text.slice(0, cut)), ...parser.take(text.slice(cut))];
    expect(events).toEqual([
      { name: "rows", data: { all: [] } },
      { name: "gone", data: {} },
    ]);
  }
});

test.each([1, 2, 3, 7])("events come whole from chunks of %i characters", (size) => {
  const text = 'event: rows\ndata: {"all":[]}\n\n\n:\n\nevent: gone\ndata: {}\n\n';
  const parser = new EventParser();
  const events = [];
  for (let at = 0; at < text.length; at += size) events.push(...parser.take(text.slice(at, at + size)), ...parser.take(""));
  expect(events.map((event) => event.name)).toEqual(["rows", "gone"]);
});
