// Changes a YAML text so that it says something else, and leaves all the rest of it as it was written.

import { Document, type Node, type ParsedNode, Scalar, type YAMLMap, type YAMLSeq, isCollection, isMap, isScalar, isSeq, parseDocument, visit } from "yaml";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** A part of the text, from one offset to another, and what takes its place. */
interface Change {
  from: number;
  to: number;
  insert: string;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two values are the same, in whatever order their keys are. */
export function isSame(one: unknown, other: unknown): boolean {
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((each, index) => isSame(each, other[index]));
  if (!isObject(one) || !isObject(other)) return Object.is(one, other);
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]));
}

/**
 * The text with another content. Lines that say the same stay as they are, with comments, quotes and order; where that
 * cannot be done, the document is written anew, with its comments.
 *
 * @param text one document, a map, without errors.
 */
export function rewrite(text: string, content: JsonObject): string {
  const document = parseDocument(text);
  const root = document.contents;
  if (isMap<ParsedNode>(root) && !root.flow) {
    const writer = new Writer(text, styleOf(document, text));
    if (writer.merge(root, content)) {
      const written = writer.result();
      if (isSame(valueOf(written), content)) return written;
    }
  }
  if (isMap(root)) patch(document, root, content);
  return document.toString({ lineWidth: 0, ...styleOf(document, text) });
}

function valueOf(text: string): unknown {
  const document = parseDocument(text);
  return document.errors.length > 0 ? undefined : document.toJS();
}

class Writer {
  private changes: Change[] = [];

  constructor(
    private readonly text: string,
    private readonly style: Style,
  ) {}

  result(): string {
    // Of those at one place the last comes first, and so ends up below.
    const ordered = this.changes.toReversed().toSorted((one, other) => other.from - one.from || other.to - one.to);
    let before = Infinity;
    let text = this.text;
    for (const { from, to, insert } of ordered) {
      if (to > before) return ""; // They overlap, so that none of them is safe.
      text = text.slice(0, from) + insert + text.slice(to);
      before = from;
    }
    return text;
  }

  /** Note what makes a node say the value; false where only its owner can, who writes the whole of it. */
  merge(node: Node | null, value: Json): boolean {
    if (node === null) return value === null;
    if (isSame(node.toJS(new Document()), value)) return true;
    if (isCollection(node) && node.flow) return this.mergeFlow(node as YAMLMap | YAMLSeq, value);
    if (isMap(node)) return isObject(value) && this.mergeMap(node, value);
    if (isSeq(node)) return Array.isArray(value) && this.mergeList(node, value);
    return isScalar(node) && this.mergeScalar(node, value);
  }

  private mergeScalar(node: Scalar, value: Json): boolean {
    const [from, to] = node.range ?? [0, 0];
    const old = this.text.slice(from, to);
    if (typeof value === "object" || from === to || old.includes("\n") || node.tag || node.anchor) return false;
    const text = this.rendered(value);
    if (text.includes("\n")) return false;
    this.changes.push({ from, to, insert: text });
    return true;
  }

  /** In braces or brackets: those on the outside are written anew, unless they are empty, and lines are better. */
  private mergeFlow(node: YAMLMap | YAMLSeq, value: Json): boolean {
    const isLike = isMap(node) ? isObject(value) : Array.isArray(value);
    if (!isLike || !node.range || node.items.length === 0) return false;
    const document = new Document(node);
    patch(document, node, value);
    const written = document.toString({ lineWidth: 0, ...this.style }).trimEnd();
    const indent = /^ */.exec(this.text.slice(this.lineStart(node.range[0])))![0];
    this.changes.push({ from: node.range[0], to: node.range[1], insert: written.replaceAll("\n", `\n${indent}`) });
    return true;
  }

  private mergeMap(map: YAMLMap, value: JsonObject): boolean {
    const keys = map.items.map(({ key }) => (isScalar(key) && key.range ? key : null));
    if (keys.some((key) => key === null) || !keys.some((key) => Object.hasOwn(value, String(key!.value)))) return false;
    const column = this.column(keys[0]!.range![0]);
    const known = new Set(keys.map((key) => String(key!.value)));
    const added = Object.entries(value).filter(([name]) => !known.has(name));
    let last = 0;
    for (const [index, pair] of map.items.entries()) {
      const key = keys[index]!;
      const name = String(key.value);
      const old = pair.value as Node | null;
      const [from, to] = [key.range![0], this.end(old, key)];
      // A field that has gone where another one has come was given another name.
      const [present, next] = Object.hasOwn(value, name) ? [name, value[name]!] : (added.shift() ?? [name, undefined]);
      if (next === undefined) {
        if (!this.isFirst(from)) return false; // It stands behind a dash.
        this.remove(from, to);
        continue;
      }
      last = to;
      if (present === name && this.merge(old, next)) continue;
      if (present === name && isEmpty(old) && typeof next === "object") this.append(from, this.lines({ [name]: next }, column).slice(1));
      else this.replace(from, to, this.lines({ [present]: next }, column));
    }
    if (added.length > 0) this.append(last, this.lines(Object.fromEntries(added), column));
    return true;
  }

  private mergeList(list: YAMLSeq, value: Json[]): boolean {
    const items = list.items as Node[];
    if (value.length === 0 || items.some((item) => !item?.range)) return false;
    const old = items.map((item) => item.toJS(new Document()) as Json);
    let first = 0;
    while (first < Math.min(old.length, value.length) && isSame(old[first], value[first])) first++;
    let same = 0;
    while (same < Math.min(old.length, value.length) - first && isSame(old.at(-1 - same), value.at(-1 - same))) same++;
    const [oldEnd, newEnd] = [old.length - same, value.length - same];
    const dash = this.text.lastIndexOf("-", items[0]!.range![0] - 1);
    const column = this.column(dash);
    const starts = items.map((item) => this.lineStart(item.range![0]) + column);
    if (starts.some((start) => this.text[start] !== "-" || !this.isFirst(start))) return false;
    for (let index = first; index < oldEnd; index++) {
      const item = items[index]!;
      if (index >= newEnd) this.remove(starts[index]!, this.end(item));
      else this.replaceUnlessMerged(item, value[index]!, starts[index]!, column);
    }
    if (newEnd > oldEnd) {
      const added = this.lines(value.slice(Math.max(first, oldEnd), newEnd), column);
      if (oldEnd > 0) this.append(this.end(items[oldEnd - 1]!), added);
      else this.changes.push({ from: this.lineStart(dash), to: this.lineStart(dash), insert: `${added.join("\n")}\n` });
    }
    return true;
  }

  private replaceUnlessMerged(item: Node, value: Json, start: number, column: number): void {
    const count = this.changes.length;
    if (this.merge(item, value)) return;
    this.changes.length = count;
    this.replace(start, this.end(item), this.lines([value], column));
  }

  private replace(from: number, to: number, lines: string[]): void {
    this.changes.push({ from, to: this.contentEnd(from, to), insert: lines.join("\n").trimStart() });
  }

  /** Remove the lines from one offset to another. */
  private remove(from: number, to: number): void {
    this.changes.push({ from: this.lineStart(from), to: Math.min(this.lineEnd(to) + 1, this.text.length), insert: "" });
  }

  /** Put lines below the line of an offset. */
  private append(offset: number, lines: string[]): void {
    const end = this.lineEnd(offset);
    this.changes.push({ from: end, to: end, insert: `\n${lines.join("\n")}` });
  }

  private lines(content: Json, column: number): string[] {
    return this.rendered(content).split("\n").map((line) => (line ? " ".repeat(column) + line : line));
  }

  private rendered(content: Json): string {
    const document = new Document(content);
    quoteWords(document, this.style.singleQuote ? Scalar.QUOTE_SINGLE : Scalar.QUOTE_DOUBLE);
    return document.toString({ lineWidth: 0, ...this.style }).replace(/\n$/, "");
  }

  /** Where the content of a node ends, which is before comments and empty lines. */
  private end(node: Node | null, key?: Scalar): number {
    if (isCollection(node) && !node.flow && node.items.length > 0) {
      const last = node.items.at(-1) as Node | { key: Scalar; value: Node | null };
      return "key" in last ? this.end(last.value, last.key) : this.end(last);
    }
    if (isEmpty(node)) return key?.range?.[1] ?? node?.range?.[0] ?? 0;
    return this.contentEnd(node!.range![0], node!.range![1]);
  }

  private contentEnd(from: number, to: number): number {
    return from + this.text.slice(from, to).trimEnd().length;
  }

  private lineStart(offset: number): number {
    return this.text.lastIndexOf("\n", offset - 1) + 1;
  }

  private lineEnd(offset: number): number {
    const end = this.text.indexOf("\n", offset);
    return end < 0 ? this.text.length : end;
  }

  private column(offset: number): number {
    return offset - this.lineStart(offset);
  }

  private isFirst(offset: number): boolean {
    return this.text.slice(this.lineStart(offset), offset).trim() === "";
  }
}

/** Whether nothing is written where a value could be. */
function isEmpty(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.value === null && (!node.range || node.range[0] === node.range[1]));
}

/** Change the document in memory, with the nodes that say the same as before. */
function patch(document: Document, node: YAMLMap | YAMLSeq, value: Json): void {
  if (isMap(node) && isObject(value)) {
    for (const pair of [...node.items]) if (!Object.hasOwn(value, keyOf(pair.key))) node.delete(pair.key);
    for (const [name, next] of Object.entries(value)) {
      const old = node.get(name, true) as Node | undefined;
      if (old && isSame(old.toJS(new Document()), next)) continue;
      if (isScalar(old) && typeof next !== "object") reuse(old, next);
      else if (isCollection(old) && typeof next === "object" && isMap(old) === isObject(next)) patch(document, old as YAMLMap | YAMLSeq, next);
      else node.set(name, created(document, next));
    }
  } else if (isSeq(node) && Array.isArray(value)) {
    const old = node.items as Node[];
    const kept = (next: Json, index: number) => (old[index] && isSame(old[index].toJS(new Document()), next) ? old[index] : created(document, next));
    node.items = value.map(kept);
  }
}

/** Change a scalar, whose comment stays. */
function reuse(scalar: Scalar, value: Json): void {
  scalar.value = value;
  delete scalar.type;
  delete scalar.source;
  quoteWords(scalar);
}

function created(document: Document, value: Json): Node {
  const node = document.createNode(value) as Node;
  quoteWords(node);
  return node;
}

function keyOf(key: unknown): string {
  return String(isScalar(key) ? key.value : key);
}

const NOT_TEXT = /^(y|yes|n|no|on|off|true|false|null|~|<<|=|[-+]?[.\d][\d_a-fxo.+:-]*)$/i;

/** Quote texts that Kubernetes, which reads YAML 1.1, would take for something else. */
function quoteWords(node: Document | Node, type: Scalar.Type = Scalar.QUOTE_DOUBLE): void {
  visit(node, {
    Scalar(_, scalar) {
      if (typeof scalar.value === "string" && NOT_TEXT.test(scalar.value)) scalar.type = type;
    },
  });
}

/** How a text is written, which its changes follow. */
interface Style {
  /** Whether the dashes of lists stand further in than the key of the list; where there is no list, they do not. */
  indentSeq: boolean;
  /** Whether spaces stand inside of braces and brackets; where there are none, they do not. */
  flowCollectionPadding: boolean;
  /** Whether more texts have single quotes than double ones. */
  singleQuote: boolean;
}

function styleOf(document: Document.Parsed, text: string): Style {
  const column = (offset: number) => offset - (text.lastIndexOf("\n", offset - 1) + 1);
  let indentSeq: boolean | undefined;
  let singles = 0;
  visit(document, {
    Pair(_, { key, value }) {
      if (indentSeq !== undefined || !isSeq(value) || value.flow || !value.range || !isScalar(key) || !key.range) return;
      indentSeq = column(value.range[0]) > column(key.range[0]);
    },
    Scalar(_, { type }) {
      singles += type === Scalar.QUOTE_SINGLE ? 1 : type === Scalar.QUOTE_DOUBLE ? -1 : 0;
    },
  });
  return { indentSeq: indentSeq ?? false, flowCollectionPadding: /[{[] /.test(text), singleQuote: singles > 0 };
}
