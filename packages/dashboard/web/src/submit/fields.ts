// The fields of a TrainJob that people change: where they stand, what they say, and how they are changed.

import type { Runtime } from "../model";
import { CLUSTER_WIDE } from "../model";
import { type Json, type JsonObject, isObject, isSame } from "./rewrite";

export const QUEUE = "kueue.x-k8s.io/queue-name";
export const CHECKPOINTS = "trainer.kubeflow.org/checkpoints";
const DEVICES = /^(nvidia\.com\/(gpu|mig-)|amd\.com\/gpu|gpu\.intel\.com\/|habana\.ai\/gaudi|aws\.amazon\.com\/neuron|google\.com\/tpu|huawei\.com\/)/;
const USUAL_DEVICE = "nvidia.com/gpu";

type Path = readonly string[];

const LIMITS: Path = ["spec", "trainer", "resourcesPerNode", "limits"];
const REQUESTS: Path = ["spec", "trainer", "resourcesPerNode", "requests"];

/** The paths of fields whose errors are shown beside their input. */
export const PLACES = {
  name: ["metadata.name"],
  namespace: ["metadata.namespace"],
  runtime: ["spec.runtimeRef"],
  nodes: ["spec.trainer.numNodes"],
  gpus: ["spec.trainer.resourcesPerNode"],
  restarts: ["spec.maxRestarts"],
  image: ["spec.trainer.image"],
  command: ["spec.trainer.command"],
  args: ["spec.trainer.args"],
  env: ["spec.trainer.env"],
  queue: [`metadata.labels[${QUEUE}]`, `metadata.labels.${QUEUE}`],
  checkpoints: [`metadata.annotations[${CHECKPOINTS}]`],
  labels: ["metadata.labels"],
} as const;

export type FieldName = keyof typeof PLACES;

export interface Wrong {
  field: string;
  message: string;
}

/** The field of the form that an error is about; undefined for one that only the YAML has. */
export function fieldOf(path: string): FieldName | undefined {
  const isAt = (place: string) => path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`);
  return (Object.keys(PLACES) as FieldName[]).find((name) => PLACES[name].some(isAt));
}

/** A variable; `origin` says where its value comes from, which the form does not change. */
export interface Variable {
  name: string;
  value: string;
  origin: string;
}

export interface RuntimeRef {
  name: string;
  kind: string;
}

/** What the form shows; undefined is what the TrainJob leaves to others. */
export interface Fields {
  name: string;
  namespace: string;
  runtime: RuntimeRef;
  nodes: Json | undefined;
  gpus: Json | undefined;
  restarts: Json | undefined;
  image: Json | undefined;
  command: Json | undefined;
  args: Json | undefined;
  env: Variable[];
  queue: Json | undefined;
  checkpoints: Json | undefined;
  labels: [name: string, value: string][];
}

export function at(content: Json | undefined, path: Path): Json | undefined {
  let value: Json | undefined = content;
  for (const key of path) value = isObject(value) ? value[key] : undefined;
  return value ?? undefined;
}

/** The content with a value at a path; undefined removes it, and the maps around it that it leaves empty. */
export function withValue(content: JsonObject, path: Path, value: Json | undefined): JsonObject {
  const [key, ...rest] = path;
  const next = { ...content };
  const inside = rest.length === 0 ? value : withValue(isObject(content[key!]) ? (content[key!] as JsonObject) : {}, rest, value);
  const isGone = inside === undefined || (value === undefined && isObject(inside) && Object.keys(inside).length === 0);
  if (isGone) delete next[key!];
  else next[key!] = inside;
  return next;
}

export function fieldsOf(content: JsonObject): Fields {
  const labels = at(content, ["metadata", "labels"]);
  return {
    name: textOf(at(content, ["metadata", "name"])),
    namespace: textOf(at(content, ["metadata", "namespace"])),
    runtime: { name: textOf(at(content, ["spec", "runtimeRef", "name"])), kind: textOf(at(content, ["spec", "runtimeRef", "kind"])) || CLUSTER_WIDE },
    nodes: at(content, ["spec", "trainer", "numNodes"]),
    gpus: at(content, [...LIMITS, deviceOf(content)]) ?? at(content, [...REQUESTS, deviceOf(content)]),
    restarts: at(content, ["spec", "maxRestarts"]),
    image: at(content, ["spec", "trainer", "image"]),
    command: at(content, ["spec", "trainer", "command"]),
    args: at(content, ["spec", "trainer", "args"]),
    env: variablesOf(content),
    queue: at(content, ["metadata", "labels", QUEUE]),
    checkpoints: at(content, ["metadata", "annotations", CHECKPOINTS]),
    labels: Object.entries(isObject(labels) ? labels : {}).filter(([name]) => name !== QUEUE).map(([name, value]) => [name, textOf(value)]),
  };
}

export function textOf(value: Json | undefined): string {
  return value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The words of a list of texts; null where it is none, which the form leaves to the YAML. */
export function wordsOf(value: Json | undefined): string[] | null {
  if (value === undefined) return [];
  return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : null;
}

/** The resource by which the nodes of a TrainJob ask for GPUs and the like. */
export function deviceOf(content: JsonObject): string {
  for (const path of [LIMITS, REQUESTS]) {
    const resources = at(content, path);
    const found = isObject(resources) && Object.keys(resources).find((name) => DEVICES.test(name));
    if (found) return found;
  }
  return USUAL_DEVICE;
}

/** GPUs stand in the limits; in the requests, which must say the same, only where they already do. */
export function withGpus(content: JsonObject, gpus: Json | undefined): JsonObject {
  const device = deviceOf(content);
  const isRequested = at(content, [...REQUESTS, device]) !== undefined;
  const isLimited = at(content, [...LIMITS, device]) !== undefined;
  const limited = isRequested && !isLimited ? content : withValue(content, [...LIMITS, device], gpus);
  return isRequested ? withValue(limited, [...REQUESTS, device], gpus) : limited;
}

export function withRuntime(content: JsonObject, { name, kind }: RuntimeRef): JsonObject {
  const named = withValue(content, ["spec", "runtimeRef", "name"], name);
  const before = at(content, ["spec", "runtimeRef", "kind"]);
  if (kind === (before ?? CLUSTER_WIDE)) return named;
  return withValue(named, ["spec", "runtimeRef", "kind"], kind === CLUSTER_WIDE ? undefined : kind);
}

function variablesOf(content: JsonObject): Variable[] {
  const env = at(content, ["spec", "trainer", "env"]);
  return (Array.isArray(env) ? env : []).map((each) => {
    const entry = isObject(each) ? each : {};
    return { name: textOf(entry.name), value: textOf(entry.value), origin: originIn(entry) };
  });
}

const ORIGINS: [key: string, title: string][] = [["secretKeyRef", "Secret"], ["configMapKeyRef", "ConfigMap"]];

/** Where the value of an entry comes from; "" where it stands in it. */
function originIn(entry: JsonObject): string {
  return isObject(entry.valueFrom) ? originOf(entry.valueFrom) : "";
}

function originOf(source: JsonObject): string {
  for (const [key, title] of ORIGINS) {
    const reference = source[key];
    if (isObject(reference)) return `${textOf(reference.key)} of the ${title} ${textOf(reference.name)}`;
  }
  return textOf(at(source, ["fieldRef", "fieldPath"])) || textOf(at(source, ["resourceFieldRef", "resource"])) || "elsewhere";
}

/** The content with other variables; entries keep what the form does not show of them. */
export function withVariables(content: JsonObject, variables: readonly Variable[]): JsonObject {
  const before = at(content, ["spec", "trainer", "env"]);
  const old = Array.isArray(before) ? before.filter(isObject) : [];
  const owned = ownersOf(variables, old);
  const next = variables.map(({ name, value, origin }, index): JsonObject => {
    const own = owned[index] ?? {};
    return origin ? { ...own, name } : { ...own, name, value: isSame(textOf(own.value), value) && own.value !== undefined ? own.value : value };
  });
  return withValue(content, ["spec", "trainer", "env"], next.length > 0 ? next : undefined);
}

/** The entry that each variable was: what is typed may be the name of another one for a while, which keeps its own. */
function ownersOf(variables: readonly Variable[], old: readonly JsonObject[]): (JsonObject | undefined)[] {
  const left = new Set(old);
  const found: (JsonObject | undefined)[] = variables.map(() => undefined);
  const take = (candidate: (variable: Variable, index: number) => JsonObject | undefined) =>
    variables.forEach((variable, index) => {
      const own = found[index] ? undefined : candidate(variable, index);
      if (own && left.has(own) && originIn(own) === variable.origin) {
        found[index] = own;
        left.delete(own);
      }
    });
  take(({ name }, index) => (old[index]?.name === name ? old[index] : undefined));
  take(({ name, origin }) => [...left].find((each) => each.name === name && originIn(each) === origin));
  if (variables.length === old.length) take((_, index) => old[index]);
  return found;
}

export function withLabels(content: JsonObject, labels: readonly (readonly [string, string])[]): JsonObject {
  const queue = at(content, ["metadata", "labels", QUEUE]);
  const all = Object.fromEntries([...(queue === undefined ? [] : [[QUEUE, queue] as const]), ...labels]);
  return withValue(content, ["metadata", "labels"], Object.keys(all).length > 0 ? all : undefined);
}

/** The runtime that a TrainJob of a namespace builds on, if its user may see it. */
export function runtimeOf(runtimes: readonly Runtime[], { runtime, namespace }: Fields): Runtime | undefined {
  const place = runtime.kind === CLUSTER_WIDE ? "" : namespace;
  return runtimes.find((each) => each.name === runtime.name && each.kind === runtime.kind && each.namespace === place);
}

/** The fields that say something else than those of the original. */
export function changes(original: Fields, fields: Fields): Set<FieldName> {
  const names = Object.keys(PLACES) as FieldName[];
  return new Set(names.filter((name) => !isSame(original[name] as unknown, fields[name] as unknown)));
}
