// Server-sent events from a fetch, because EventSource cannot send the token in a header.

export interface ServerEvent {
  name: string;
  data: unknown;
}

/** Puts chunks of text together to events; comments are skipped. */
export class EventParser {
  #rest = "";

  take(chunk: string): ServerEvent[] {
    const blocks = (this.#rest + chunk).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.flatMap(parse);
  }
}

function parse(block: string): ServerEvent[] {
  let name = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    if (line.startsWith("data: ")) data += line.slice(6);
  }
  return name ? [{ name, data: JSON.parse(data) as unknown }] : [];
}
