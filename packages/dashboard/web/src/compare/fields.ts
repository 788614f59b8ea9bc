// What trainings were started with: which parameters differ, and which are the same in all.

import type { Recipe } from "../model";
import { visible } from "../job/command";
import { numberOf } from "./numbers";
import type { Training } from "./training";

export interface Field {
  /** Names it in the address; of a parameter, a variable or a setting with `p:`, `v:` or `s:` in front. */
  key: string;
  title: string;
  /** Of each training; null where it is not set, or not known. */
  values: readonly (string | null)[];
}

/** Beginning of the variables by which a trial of a sweep gets its parameters. */
const SWEPT = "KUBEFLOW_TRAINER_OPT_";

export interface Fields {
  differing: Field[];
  same: Field[];
}

const SETTINGS: [title: string, value: (training: Training, recipe: Recipe) => string][] = [
  ["Runtime", ({ row, past }) => row?.runtime ?? past?.runtime ?? ""],
  ["Nodes", ({ row, past }) => String(row?.nodes ?? past?.nodes ?? "")],
  ["GPUs per node", ({ row }) => String(row?.devicesPerNode || "")],
  ["Processes per node", (_, { processes }) => processes],
  ["Image", ({ past }, { image }) => image || past?.image || ""],
  ["Git revision", (_, { revision }) => revision],
  ["Code", (_, { repository }) => repository],
  ["Data", (_, { data }) => data.filter(([title]) => title === "dataset").map(([, uri]) => uri).join(" ")],
  ["Model", (_, { data }) => data.filter(([title]) => title === "model").map(([, uri]) => uri).join(" ")],
  ["Resources per node", (_, { resources }) => Object.entries(resources).map(([name, amount]) => `${name} ${amount}`).join(", ")],
];

/** All that trainings were started with; those that are not known yet make no difference. */
export function fieldsOf(trainings: readonly Training[]): Fields {
  const found = new Map<string, Omit<Field, "values"> & { of: Map<string, string> }>();
  const add = (training: Training, origin: "p" | "v" | "s", title: string, value: string) => {
    const key = `${origin}:${title}`;
    const field = found.get(key) ?? { key, title, of: new Map<string, string>() };
    found.set(key, field);
    field.of.set(training.id, visible(value));
  };
  // Parameters first, of all trainings: what is found first is shown first.
  for (const training of trainings) {
    const { recipe } = training;
    if (!recipe) continue;
    for (const [name, value] of parametersOf(recipe)) add(training, "p", name, value || "on");
  }
  for (const training of trainings) {
    const { recipe } = training;
    if (!recipe) continue;
    for (const { name, value, origin } of recipe.env) if (!name.startsWith(SWEPT)) add(training, "v", name, origin ? `from ${origin}` : value);
    for (const [title, valueOf] of SETTINGS) {
      const value = valueOf(training, recipe);
      if (value) add(training, "s", title, value);
    }
  }
  const fields = [...found.values()].map(({ of, ...field }): Field => ({ ...field, values: trainings.map(({ id }) => of.get(id) ?? null) }));
  const isKnown = trainings.map(({ recipe }) => recipe !== null);
  const differs = ({ values }: Field) => new Set(values.filter((_, index) => isKnown[index]).map(canonical)).size > 1;
  return { differing: fields.filter(differs), same: fields.filter((field) => !differs(field)) };
}

/** Its parameters, also those of a sweep; an option counts, unless it only passes on the value of the sweep. */
function parametersOf({ parameters, env }: Recipe): ReadonlyMap<string, string> {
  const found = new Map(parameters);
  const byName = new Map(parameters.map(([name]) => [name.replaceAll("-", "_").toLowerCase(), name]));
  for (const { name: variable, value } of env) {
    if (!variable.startsWith(SWEPT)) continue;
    const name = variable.slice(SWEPT.length).toLowerCase();
    const known = byName.get(name) ?? name;
    if (found.get(known)?.includes(variable) ?? true) found.set(known, value);
  }
  return found;
}

/** 1e-3 and 0.001 are one value. */
function canonical(value: string | null): string | number | null {
  return value === null ? null : (numberOf(value) ?? value);
}
