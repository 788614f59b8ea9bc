// The editor of YAML: CodeMirror, below a shadow root, where its styles need no exception from the policy of the page.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { unifiedMergeView } from "@codemirror/merge";
import { Compartment, EditorState, type Extension, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  GutterMarker,
  WidgetType,
  gutterLineClass,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

/** What is wrong in a line, which counts from 1. */
export interface LineError {
  line: number;
  message: string;
}

export interface Editor {
  text(): string;
  /** Show another text, as one change that can be undone. */
  setText(text: string): void;
  setErrors(errors: readonly LineError[]): void;
  /** Show what differs from a text; null shows the text alone. */
  compareWith(original: string | null): void;
  destroy(): void;
}

const setErrors = StateEffect.define<readonly LineError[]>();

class Message extends WidgetType {
  constructor(private readonly text: string) {
    super();
  }

  override eq(other: Message): boolean {
    return other.text === this.text;
  }

  override toDOM(): HTMLElement {
    // What is around it is its padding: margins of blocks are not measured.
    const element = document.createElement("div");
    element.className = "cm-message";
    element.appendChild(document.createElement("p")).textContent = this.text;
    return element;
  }
}

class WrongLine extends GutterMarker {
  override elementClass = "cm-wrong-number";
}

const wrongLine = new WrongLine();

interface Marks {
  lines: DecorationSet;
  numbers: ReturnType<RangeSetBuilder<GutterMarker>["finish"]>;
}

function marksOf(state: EditorState, errors: readonly LineError[]): Marks {
  const lines = new RangeSetBuilder<Decoration>();
  const numbers = new RangeSetBuilder<GutterMarker>();
  for (const { line, message } of errors.toSorted((one, other) => one.line - other.line)) {
    const place = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
    lines.add(place.from, place.from, Decoration.line({ class: "cm-wrong" }));
    lines.add(place.to, place.to, Decoration.widget({ widget: new Message(message), side: 1, block: true }));
    numbers.add(place.from, place.from, wrongLine);
  }
  return { lines: lines.finish(), numbers: numbers.finish() };
}

const errorMarks = StateField.define<Marks>({
  create: (state) => marksOf(state, []),
  update(marks, transaction) {
    for (const effect of transaction.effects) if (effect.is(setErrors)) return marksOf(transaction.state, effect.value);
    return transaction.docChanged ? { lines: marks.lines.map(transaction.changes), numbers: marks.numbers.map(transaction.changes) } : marks;
  },
  provide: (field) => [EditorView.decorations.from(field, ({ lines }) => lines), gutterLineClass.from(field, ({ numbers }) => numbers)],
});

const HIGHLIGHTING = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.comment, tags.lineComment, tags.meta], color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.separator, tags.punctuation, tags.squareBracket, tags.brace], color: "var(--quiet)" },
  { tag: [tags.labelName, tags.typeName, tags.keyword], color: "var(--warn)" },
]);

const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--page)", fontSize: "13px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-content": { padding: "10px 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 12px 0 8px" },
  ".cm-gutters": { backgroundColor: "var(--page)", color: "var(--quiet)", border: "0" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 6px 0 12px", minWidth: "36px" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine, &.cm-focused .cm-activeLineGutter": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent" },
  ".cm-wrong": { boxShadow: "inset 3px 0 var(--bad)" },
  ".cm-wrong-number": { color: "var(--bad)", fontWeight: "600" },
  ".cm-message": { padding: "2px 12px 6px 8px" },
  ".cm-message p": {
    margin: "0",
    padding: "3px 10px",
    borderRadius: "4px",
    color: "var(--bad)",
    backgroundColor: "var(--bad-back)",
    fontFamily: "system-ui, sans-serif",
    whiteSpace: "pre-wrap",
    overflowWrap: "anywhere",
  },
  ".cm-changedLine, .cm-insertedLine, &.cm-merge-b .cm-changedLine": { backgroundColor: "var(--good-back) !important" },
  ".cm-deletedChunk": { padding: "0 12px 0 8px", backgroundColor: "var(--bad-back)" },
  ".cm-deletedChunk .cm-deletedText": { background: "none" },
  ".cm-deletedChunk .cm-deletedLine, .cm-deletedLine del": { textDecoration: "none", color: "var(--bad)" },
  ".cm-deletedChunk span": { color: "var(--bad) !important" },
  ".cm-collapsedLines": { padding: "4px 8px", color: "var(--quiet)", background: "var(--raised)", fontFamily: "system-ui, sans-serif" },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: "none" },
  ".cm-changeGutter": { width: "3px", paddingLeft: "0" },
  ".cm-changedLineGutter": { background: "var(--good)" },
  ".cm-deletedLineGutter": { background: "var(--bad)" },
});

export function createEditor(parent: HTMLElement, text: string, label: string, onText: (text: string) => void): Editor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const comparison = new Compartment();
  const extensions: Extension[] = [
    lineNumbers(),
    history(),
    // Of the form, it creates the TrainJob.
    keymap.of([...defaultKeymap.filter(({ key }) => key !== "Mod-Enter"), ...historyKeymap]),
    indentUnit.of("  "),
    EditorState.tabSize.of(2),
    yaml(),
    syntaxHighlighting(HIGHLIGHTING),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
    typeOver,
    errorMarks,
    comparison.of([]),
    THEME,
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onText(update.state.doc.toString());
    }),
  ];
  const view = new EditorView({ parent: root, root, state: EditorState.create({ doc: text, extensions }) });
  const textNow = () => view.state.doc.toString();
  return {
    text: textNow,
    setText(next) {
      if (next !== textNow()) view.dispatch({ changes: changeBetween(textNow(), next), userEvent: "input.form" });
    },
    setErrors: (errors) => view.dispatch({ effects: setErrors.of(errors) }),
    compareWith(original) {
      const shown = original === null ? [] : unifiedMergeView({ original, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 }, syntaxHighlightDeletions: false, highlightChanges: false });
      view.dispatch({ effects: comparison.reconfigure(shown) });
    },
    destroy: () => view.destroy(),
  };
}

/** Type over a selection: the browser would keep the colours of what was there, by styles that the policy forbids. */
const typeOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || event.data === null || event.isComposing || view.state.selection.main.empty) return false;
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

/** The one change that makes a text another one. */
export function changeBetween(before: string, after: string): { from: number; to: number; insert: string } {
  const shortest = Math.min(before.length, after.length);
  let from = 0;
  while (from < shortest && before[from] === after[from]) from++;
  let same = 0;
  while (same < shortest - from && before.at(-1 - same) === after.at(-1 - same)) same++;
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) };
}
