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
