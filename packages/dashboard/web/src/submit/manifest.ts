// The YAML of a TrainJob: what it says, why it cannot be read, and where its fields stand.

import { type Alias, type Document, LineCounter, type Node, isMap, isScalar, isSeq, parseDocument, visit } from "yaml";
import { type JsonObject, isObject } from "./rewrite";

/** Lines and columns count from 1. */
export interface Mistake {
  line: number;
  message: string;
}

export interface Manifest {
  /** What it says; empty where it cannot be read. */
  content: JsonObject;
  mistake: Mistake | null;
  /** The line of a field, or of the one that it would stand in. */
  lineOf(field: string): number;
}

/** What the reader of YAML finds, for people who do not know its terms. */
const SENTENCES: Record<string, string> = {
  BAD_INDENT: "The fields of one object must begin in the same column, and so must the dashes of one list.",
  BLOCK_AS_IMPLICIT_KEY: "A field stands inside of another one that has a value already: check the indentation, or quote a value with a colon.",
  BLOCK_IN_FLOW: "Inside of braces and brackets, fields and items are apart by commas.",
  DUPLICATE_KEY: "This field is here twice.",
  MULTILINE_IMPLICIT_KEY: "A field must have a colon behind its name, and its value begins in the same line.",
  MULTIPLE_DOCS: "Only one TrainJob can be created at a time: this is the beginning of another document.",
  TAB_AS_INDENT: "Indent with spaces: YAML takes no tabs.",
};
const NO_ALIASES = "Write what the alias stands for: the page takes no aliases.";
const NO_MAP = "It must be a TrainJob: fields, each with its name, a colon and a value.";

export function read(text: string): Manifest {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineOf = (field: string) => {
    const place = /^line (\d+)/.exec(field);
    return place ? Number(place[1]) : lines.linePos(offsetOf(document.contents, field)).line;
  };
  const fail = (message: string, offset: number): Manifest => ({ content: {}, mistake: { message, line: Math.max(1, lines.linePos(offset).line) }, lineOf });
  const [error] = document.errors;
  if (error) return fail(sentence(error.message, error.code), error.pos[0]);
  const alias = aliasOf(document);
  if (alias) return fail(NO_ALIASES, alias.range?.[0] ?? 0);
  try {
    const content: unknown = document.toJS({ maxAliasCount: 100 });
    return isObject(content) ? { content, mistake: null, lineOf } : fail(NO_MAP, 0);
  } catch (problem) {
    return fail(sentence((problem as Error).message), 0);
  }
}

/** The first alias: one may stand for what it is a part of, which has no end. */
function aliasOf(document: Document.Parsed): Alias | null {
  let found: Alias | null = null;
  visit(document, {
    Alias(_, node) {
      found = node;
      return visit.BREAK;
    },
  });
  return found;
}

function sentence(message: string, code = ""): string {
  if (message.startsWith("Flow ")) return "A bracket or a brace is not closed.";
  if (SENTENCES[code]) return SENTENCES[code];
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

/** Where a field begins, or the deepest one on the way to it; paths are those of Kubernetes, such as `spec.parts[0].name`. */
function offsetOf(root: Node | null, field: string): number {
  let node: Node | null = root;
  let offset = 0;
  let rest = field;
  while (rest && node) {
    const step = stepInto(node, rest);
    if (!step) break;
    [node, offset, rest] = step;
  }
  return offset;
}

function stepInto(node: Node, path: string): [value: Node | null, offset: number, rest: string] | null {
  if (isSeq(node)) {
    const found = /^\[(\d+)\]/.exec(path);
    const item = found && (node.items[Number(found[1])] as Node | undefined);
    return item ? [item, item.range?.[0] ?? 0, path.slice(found![0].length).replace(/^\./, "")] : null;
  }
  if (!isMap(node)) return null;
  let best: [value: Node | null, offset: number, rest: string] | null = null;
  for (const { key, value } of node.items) {
    if (!isScalar(key)) continue;
    const rest = behind(path, String(key.value));
    if (rest === null || (best && best[2].length <= rest.length)) continue;
    best = [value as Node | null, key.range?.[0] ?? 0, rest];
  }
  return best;
}

/** What follows a key in a path, where a key may have dots; null where the path does not begin with it. */
function behind(path: string, key: string): string | null {
  for (const head of [`[${key}]`, key]) {
    if (!path.startsWith(head)) continue;
    const rest = path.slice(head.length);
    if (rest === "" || rest.startsWith("[")) return rest;
    if (rest.startsWith(".")) return rest.slice(1);
  }
  return null;
}
