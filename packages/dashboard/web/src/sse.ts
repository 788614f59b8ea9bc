// Server-sent events from a fetch, because EventSource cannot send the token in a header.

export interface ServerEvent {
  name: string;
  data: unknown;
}

/** Puts chunks of text together to events, in linear time; comments are skipped. */
export class EventParser {
  #chunks: string[] = [];

  take(chunk: string): ServerEvent[] {
    if (!chunk) return [];
    const isEnd = chunk.includes("\n\n") || (chunk.startsWith("\n") && this.#chunks.at(-1)?.endsWith("\n"));
    this.#chunks.push(chunk);
    if (!isEnd) return [];
    const blocks = this.#chunks.join("").split("\n\n");
    const rest = blocks.pop();
    this.#chunks = rest ? [rest] : [];
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
