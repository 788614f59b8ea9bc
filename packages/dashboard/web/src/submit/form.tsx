// The form: what people change of a TrainJob. It says nothing that they have not chosen; the rest is what the runtime has.

import { useMemo } from "preact/hooks";
import type { Queues, Runtime } from "../model";
import { useAnswer } from "../polling";
import { useRuntimes } from "../runtimes/store";
import {
  CHECKPOINTS,
  type FieldName,
  type Fields,
  QUEUE,
  type Wrong,
  changes,
  fieldOf,
  fieldsOf,
  runtimeOf,
  textOf,
  withGpus,
  withLabels,
  withRuntime,
  withValue,
  withVariables,
} from "./fields";
import { NumberField, type Setting, TextField, WordsField } from "./inputs";
import { Pairs } from "./pairs";
import { RuntimePicker } from "./picker";
import { type Json, type JsonObject, isObject } from "./rewrite";

interface FormProperties {
  content: JsonObject;
  original: JsonObject;
  isDisabled: boolean;
  errors: readonly Wrong[];
  /** Whether it began as a copy, of which changes are marked. */
  isCopy: boolean;
  /** Changes the content as it is by then. */
  onChange(change: (content: JsonObject) => JsonObject): void;
}

const TRAINER = ["spec", "trainer"];

/** The content with another field of the form. */
const WRITERS: Record<FieldName, (content: JsonObject, fields: Fields) => JsonObject> = {
  name: (content, { name }) => withValue(content, ["metadata", "name"], name),
  namespace: (content, { namespace }) => withValue(content, ["metadata", "namespace"], namespace),
  runtime: (content, { runtime }) => withRuntime(content, runtime),
  nodes: (content, { nodes }) => withValue(content, [...TRAINER, "numNodes"], nodes),
  gpus: (content, { gpus }) => withGpus(content, gpus),
  restarts: (content, { restarts }) => withValue(content, ["spec", "maxRestarts"], restarts),
  image: (content, { image }) => withValue(content, [...TRAINER, "image"], image),
  command: (content, { command }) => withValue(content, [...TRAINER, "command"], command),
  args: (content, { args }) => withValue(content, [...TRAINER, "args"], args),
  env: (content, { env }) => withVariables(content, env),
  queue: (content, { queue }) => withValue(content, ["metadata", "labels", QUEUE], queue),
  checkpoints: (content, { checkpoints }) => withValue(content, ["metadata", "annotations", CHECKPOINTS], checkpoints),
  labels: (content, { labels }) => withLabels(content, labels),
};

export function Form({ content, original, isDisabled, errors, isCopy, onChange }: FormProperties) {
  const { runtimes, problems, isLoaded, problem } = useRuntimes();
  const { value: queues } = useAnswer<Queues>("/api/queues", "");
  const fields = fieldsOf(content);
  const before = useMemo(() => fieldsOf(original), [original]);
  const changed = changes(before, fields);
  const runtime = runtimeOf(runtimes, fields);
  const write = <N extends FieldName>(name: N, value: Fields[N]) => onChange((now) => WRITERS[name](now, { ...fieldsOf(now), [name]: value }));
  const setting = (name: FieldName, title: string): Setting => ({
    title,
    errors: errors.filter(({ field }) => fieldOf(field) === name).map(({ field, message }) => messageAt(name, field, message)),
    onRestore: isCopy && changed.has(name) ? () => write(name, before[name]) : undefined,
    before: shownOf(before[name]),
  });
  const namespaces = useMemo(() => namespacesOf(runtimes, queues), [runtimes, queues]);
  const own = (queues?.queues ?? []).filter(({ namespace }) => namespace === fields.namespace).map(({ name }) => name);
  return (
    <fieldset class="compose-fields" disabled={isDisabled} tabIndex={isDisabled ? 0 : undefined} aria-label="Form">
      <div class="pair-of-fields">
        <TextField {...setting("name", "Name")} value={fields.name} onValue={(name) => write("name", name)} />
        <TextField {...setting("namespace", "Namespace")} value={fields.namespace} suggestions={namespaces} onValue={(namespace) => write("namespace", namespace)} />
      </div>
      <RuntimePicker
        {...setting("runtime", "Runtime")}
        runtimes={runtimes}
        problems={[problem, ...problems].filter(Boolean)}
        isLoaded={isLoaded || Boolean(problem)}
        namespace={fields.namespace}
        chosen={fields.runtime}
        found={runtime}
        onChoice={(chosen) => write("runtime", chosen)}
      />
      <Program fields={fields} runtime={runtime} setting={setting} write={write} />
      <Pairs {...setting("env", "Variables")} noun="variable" rows={fields.env} onRows={(env) => write("env", env)} />
      {canLimitRestarts(content) && (
        <NumberField
          {...setting("restarts", "Restarts after a failure")}
          hint="Evictions and the like do not count where the runtime starts again after them."
          value={fields.restarts}
          placeholder="from the runtime"
          onValue={(restarts) => write("restarts", restarts)}
        />
      )}
      {(queues?.isServed || fields.queue !== undefined) && (
        <TextField
          {...setting("queue", "Queue")}
          hint="The label by which Kueue decides when it runs."
          value={fields.queue}
          suggestions={own}
          placeholder="none"
          onValue={(queue) => write("queue", queue || undefined)}
        />
      )}
      <TextField
        {...setting("checkpoints", "Checkpoints")}
        hint={
          <>
            Claim, or claim and path, that keeps what it writes into <code>TRAINER_CHECKPOINT_DIR</code>.
          </>
        }
        value={fields.checkpoints}
        placeholder="from the runtime, if it has one"
        onValue={(checkpoints) => write("checkpoints", checkpoints || undefined)}
      />
      <Pairs
        {...setting("labels", "Labels")}
        noun="label"
        isUnique
        rows={fields.labels.map(([name, value]) => ({ name, value, origin: "" }))}
        onRows={(rows) => write("labels", rows.map(({ name, value }) => [name, value]))}
      />
    </fieldset>
  );
}

/** Whether the version of a TrainJob has the field. */
function canLimitRestarts(content: JsonObject): boolean {
  return textOf(content.apiVersion).endsWith("/v2alpha1");
}

interface ProgramProperties {
  fields: Fields;
  runtime: Runtime | undefined;
  setting(name: FieldName, title: string): Setting;
  write<N extends FieldName>(name: N, value: Fields[N]): void;
}

/** How much runs, and what; placeholders are what the runtime has. */
function Program({ fields, runtime, setting, write }: ProgramProperties) {
  const by = (value: string | number | undefined) => (value === undefined || value === "" ? "from the runtime" : `runtime: ${value || "none"}`);
  const words = (all: readonly string[]): Json | undefined => (all.length > 0 ? [...all] : undefined);
  return (
    <>
      <div class="pair-of-fields">
        <NumberField {...setting("nodes", "Nodes")} value={fields.nodes} placeholder={by(runtime?.nodes)} onValue={(nodes) => write("nodes", nodes)} />
        <NumberField {...setting("gpus", "GPUs per node")} value={fields.gpus} placeholder={by(runtime?.devices)} onValue={(gpus) => write("gpus", gpus)} />
      </div>
      <TextField {...setting("image", "Image")} isCode value={fields.image} placeholder={by(runtime?.image)} onValue={(image) => write("image", image || undefined)} />
      <WordsField {...setting("command", "Command")} value={fields.command} placeholder={by(undefined)} onValue={(all) => write("command", words(all))} />
      <WordsField
        {...setting("args", "Arguments")}
        hint="As in a shell: words are apart by spaces, quotes keep them together."
        value={fields.args}
        placeholder="--lr 0.1 --epochs 10"
        onValue={(all) => write("args", words(all))}
      />
    </>
  );
}

/** A value in one line. */
function shownOf(value: Fields[FieldName]): string {
  const words = (each: unknown): string => (Array.isArray(each) ? each.map(words).join(" ") : isObject(each) ? textOf(each.name) : String(each ?? ""));
  return words(value);
}

/** A message, with the part of its path that the title of the field does not say. */
function messageAt(name: FieldName, field: string, message: string): string {
  const part = /\[\d+\].*$/.exec(field)?.[0] ?? "";
  return name === "env" && part ? `Variable ${Number(/\d+/.exec(part)![0]) + 1}: ${message}` : message;
}

function namespacesOf(runtimes: readonly Runtime[], queues: Queues | null): string[] {
  const names = [...runtimes, ...(queues?.queues ?? [])].map(({ namespace }) => namespace);
  return [...new Set(names.filter(Boolean))].sort();
}
