// Form and YAML of a new TrainJob: two views of one text, which is tried on the cluster as it changes.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { request } from "../api";
import { CLUSTER_WIDE } from "../model";
import { Problem } from "../parts";
import { Icon } from "../shell/icons";
import { toast } from "../shell/toasts";
import { Creation } from "./creation";
import { type Draft, storeDraft, storedDraft } from "./draft";
import { fieldsOf, withRuntime } from "./fields";
import { Form } from "./form";
import type { Editor, LineError } from "./editor";
import { type Manifest, read } from "./manifest";
import { type JsonObject, rewrite } from "./rewrite";
import "./submit.css";
import { type Verdict, useTrial } from "./trial";
import { YamlPane } from "./yaml_pane";

/** What a new TrainJob begins as a copy of. */
export interface Origin {
  /** What the tab keeps its draft under. */
  place: string;
  /** The path of the API for the copy. */
  copy: string;
}

export interface ComposerProperties {
  /** Null for an empty one. */
  origin: Origin | null;
  /** Of the address: `runtime`, `kind` and `namespace` of an empty one. */
  query: URLSearchParams;
}

const NO_RUNTIME: Verdict = { tone: "none", text: "Choose a runtime: it says what runs where this TrainJob does not.", errors: [] };

export function Composer({ origin, query }: ComposerProperties) {
  const place = origin?.place ?? "";
  const { draft, setText, isRestored, startAgain, problem } = useDraft(place, () => begin(origin, query));
  const [view, setView] = useState<"form" | "yaml">("form");
  const editor = useRef<Editor | null>(null);
  const text = draft?.text ?? "";
  const manifest = useMemo(() => read(text), [text]);
  const verdict = useVerdict(draft ? text : null, manifest);
  const original = useMemo(() => (draft ? read(draft.original).content : {}), [draft?.original]);
  const content = useLast(manifest.mistake || !draft ? null : manifest.content) ?? original;
  /** Change what the form shows: in the text of the editor, which may have what was typed since. */
  function change(edit: (content: JsonObject) => JsonObject): void {
    const before = editor.current!.text();
    const { content: now, mistake } = read(before);
    if (!mistake) editor.current!.setText(rewrite(before, edit(now)));
  }
  if (!draft) return problem ? <Problem>{problem}</Problem> : <p role="status">Loading ...</p>;
  return (
    <Creation place={place} draft={draft} verdict={verdict} onIncomplete={() => setView("form")}>
      <Notices isRestored={isRestored} manifest={manifest} onStartAgain={() => startAgain((next) => editor.current?.setText(next))} />
      <div class="switch" role="group" aria-label="View">
        {(["form", "yaml"] as const).map((each) => (
          <button key={each} type="button" aria-pressed={view === each} onClick={() => setView(each)}>
            {each === "form" ? "Form" : "YAML"}
          </button>
        ))}
      </div>
      <div class={`compose-panes show-${view}`}>
        <Form
          content={content}
          original={original}
          isCopy={origin !== null}
          isDisabled={manifest.mistake !== null}
          errors={manifest.mistake ? [] : verdict.errors}
          onChange={change}
        />
        <YamlPane text={text} editor={editor} original={origin ? draft.original : null} errors={placed(verdict, manifest)} onText={setText} />
      </div>
    </Creation>
  );
}

/** The text of a new TrainJob: of the server, with the runtime of the address. */
async function begin(origin: Origin | null, query: URLSearchParams): Promise<Draft> {
  if (origin) {
    const { yaml } = await request<{ yaml: string }>("GET", origin.copy);
    return { original: yaml, text: yaml };
  }
  const namespace = query.get("namespace") ?? "";
  const { yaml } = await request<{ yaml: string }>("GET", `/api/draft${namespace && `?${new URLSearchParams({ namespace })}`}`);
  const name = query.get("runtime");
  const text = name ? rewrite(yaml, withRuntime(read(yaml).content, { name, kind: query.get("kind") ?? CLUSTER_WIDE })) : yaml;
  return { original: text, text };
}

interface DraftState {
  draft: Draft | null;
  /** Whether it is what was typed before the page was loaded. */
  isRestored: boolean;
  problem: string;
  setText(text: string): void;
  /** Begin once more; the function gets the text. */
  startAgain(show: (text: string) => void): void;
}

/** The draft of a place, or a new one; it is kept as it changes. */
function useDraft(place: string, start: () => Promise<Draft>): DraftState {
  const [draft, setDraft] = useState<Draft | null>(() => storedDraft(place));
  const [isRestored, setRestored] = useState(draft !== null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!draft) start().then(setDraft, (error: Error) => setProblem(error.message));
  }, []);
  return {
    draft,
    isRestored,
    problem,
    setText: (text) =>
      setDraft((before) => {
        const next = before && { ...before, text };
        storeDraft(place, next);
        return next;
      }),
    startAgain(show) {
      setRestored(false);
      start().then(
        (next) => {
          setDraft(next);
          show(next.text);
        },
        (error: Error) => toast(error.message, "bad"),
      );
    },
  };
}

/** What is wrong with the text itself, else what the cluster says of it. */
function useVerdict(text: string | null, manifest: Manifest): Verdict {
  const isReady = text !== null && !manifest.mistake;
  const hasRuntime = isReady && fieldsOf(manifest.content).runtime.name !== "";
  const { verdict, isCurrent } = useTrial(hasRuntime ? text : null);
  if (!manifest.mistake) return isReady && !hasRuntime ? NO_RUNTIME : isCurrent ? verdict : { ...verdict, tone: "rest" };
  const { line, message } = manifest.mistake;
  return { tone: "bad", text: `Line ${line}: ${message}`, errors: [{ field: `line ${line}`, message }] };
}

/** The last value that was one. */
function useLast<T>(value: T | null): T | null {
  const last = useRef(value);
  if (value !== null) last.current = value;
  return last.current;
}

function placed({ errors }: Verdict, manifest: Manifest): LineError[] {
  return errors.filter(({ field }) => field !== "").map(({ field, message }) => ({ line: manifest.lineOf(field), message }));
}

function Notices({ isRestored, manifest, onStartAgain }: { isRestored: boolean; manifest: Manifest; onStartAgain(): void }) {
  return (
    <>
      {isRestored && (
        <p class="notice">
          What you typed before is back.
          <button type="button" onClick={onStartAgain}>
            Start again
          </button>
        </p>
      )}
      {manifest.mistake && (
        <p class="notice warn">
          <Icon of="alert" />
          The form waits until the YAML can be read: see its line {manifest.mistake.line}.
        </p>
      )}
    </>
  );
}
