// The inputs of the form, each with its title, what it is without, and what is wrong with it.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "../shell/icons";
import type { Json } from "./rewrite";
import { textOf, wordsOf } from "./fields";
import { useRaw } from "./raw";
import { joined, split } from "./words";

/** What every input is given by the form. */
export interface Setting {
  title: string;
  hint?: ComponentChildren;
  errors: readonly string[];
  /** Takes the value of the original, which is `before`; undefined where it has this one. */
  onRestore: (() => void) | undefined;
  before: string;
}

interface FieldProperties extends Setting {
  id: string;
  children: ComponentChildren;
}

export function Field({ id, title, hint, errors, onRestore, before, children }: FieldProperties) {
  return (
    <div class={`field${errors.length > 0 ? " wrong" : ""}`}>
      <div class="field-head">
        <label for={id}>{title}</label>
        {onRestore && <Restore title={title} before={before} onRestore={onRestore} />}
      </div>
      {children}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      <Errors id={`${id}-errors`} of={errors} />
    </div>
  );
}

function Restore({ title, before, onRestore }: { title: string; before: string; onRestore(): void }) {
  return (
    <button type="button" class="restore" aria-label={`Restore ${title}`} title={`The original has: ${before || "nothing"}`} onClick={onRestore}>
      Restore
    </button>
  );
}

export function Errors({ id, of }: { id: string; of: readonly string[] }) {
  return (
    <div id={id} class="field-errors">
      {of.map((each) => (
        <p key={each}>{each}</p>
      ))}
    </div>
  );
}

/** What an input needs so that readers hear its hint and errors with it. */
export function described(id: string, { hint, errors }: Pick<Setting, "hint" | "errors">) {
  const ids = [hint && `${id}-hint`, errors.length > 0 && `${id}-errors`].filter(Boolean).join(" ");
  return { id, "aria-invalid": errors.length > 0, ...(ids ? { "aria-describedby": ids } : {}) };
}

interface TextProperties extends Setting {
  value: Json | undefined;
  placeholder?: string;
  suggestions?: readonly string[];
  isCode?: boolean;
  onValue(value: string): void;
}

export function TextField({ value, placeholder, suggestions, isCode, onValue, ...setting }: TextProperties) {
  const id = useId();
  return (
    <Field id={id} {...setting}>
      <input
        {...described(id, setting)}
        type="text"
        class={isCode ? "mono" : ""}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        placeholder={placeholder ?? ""}
        value={textOf(value)}
        {...(suggestions?.length ? { list: `${id}-list` } : {})}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
      {suggestions && suggestions.length > 0 && (
        <datalist id={`${id}-list`}>
          {suggestions.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </Field>
  );
}

/** A number; what is none is handed on as it is, so that the cluster says what is wrong with it. */
export function NumberField({ value, placeholder, onValue, ...setting }: Omit<TextProperties, "onValue"> & { onValue(value: Json | undefined): void }) {
  const id = useId();
  const take = (text: string) => onValue(text.trim() === "" ? undefined : /^-?\d{1,15}$/.test(text.trim()) ? Number(text) : text);
  return (
    <Field id={id} {...setting}>
      <input
        {...described(id, setting)}
        type="text"
        inputMode="numeric"
        autocomplete="off"
        placeholder={placeholder ?? ""}
        value={textOf(value)}
        onInput={(event) => take(event.currentTarget.value)}
      />
    </Field>
  );
}

const NO_WORDS = "The YAML has something else than a list of texts here: change it there.";

/** Words as a shell has them. */
export function WordsField({ value, placeholder, onValue, ...setting }: Omit<TextProperties, "onValue"> & { onValue(value: string[]): void }) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const words = wordsOf(value);
  const { raw, problem, type } = useRaw(words ?? [], joined, split, onValue);
  const all = { ...setting, errors: [...setting.errors, problem].filter(Boolean) };
  useEffect(() => area.current?.setCustomValidity(problem), [problem]);
  return (
    <Field id={id} {...all} hint={words === null ? NO_WORDS : setting.hint}>
      <textarea
        {...described(id, all)}
        ref={area}
        class="mono"
        rows={Math.min(Math.max(raw.split("\n").length, 1), 12)}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        disabled={words === null}
        placeholder={placeholder ?? ""}
        value={raw}
        onInput={(event) => type(event.currentTarget.value)}
      />
    </Field>
  );
}

export interface PairRow {
  name: string;
  value: string;
  /** Where the value comes from, if it does not stand here. */
  origin: string;
}

interface PairsProperties extends Setting {
  /** One of them, such as "variable". */
  noun: string;
  rows: readonly PairRow[];
  isUnique?: boolean;
  onRows(rows: PairRow[]): void;
}

/** Names with values, such as variables. */
export function Pairs({ title, noun, rows, isUnique, errors, hint, onRestore, before, onRows }: PairsProperties) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const focused = useRef<number | null>(null);
  const { raw, problem, type } = useRaw<PairRow[], PairRow[]>([...rows], (all) => all, (all) => named(all, noun, Boolean(isUnique)), onRows);
  const change = (index: number, part: Partial<PairRow>) => type(raw.map((row, at) => (at === index ? { ...row, ...part } : row)));
  const add = (further: PairRow[]) => {
    focused.current = raw.length;
    type([...raw, ...further]);
  };
  const remove = (index: number) => {
    type(raw.filter((_, at) => at !== index));
    list.current?.querySelector<HTMLButtonElement>("button.add")?.focus();
  };
  const all = [...errors, problem].filter(Boolean);
  useLayoutEffect(() => {
    if (focused.current !== null) list.current?.querySelectorAll<HTMLInputElement>("input.pair-name")[focused.current]?.focus();
    focused.current = null;
  }, [raw.length]);
  useEffect(() => list.current?.querySelector<HTMLInputElement>("input.pair-name")?.setCustomValidity(problem), [problem, raw.length]);
  return (
    <div class={`pairs${all.length > 0 ? " wrong" : ""}`} ref={list} role="group" aria-labelledby={`${id}-title`} aria-describedby={`${id}-errors`}>
      <div class="field-head">
        <span id={`${id}-title`}>{title}</span>
        {onRestore && <Restore title={title} before={before} onRestore={onRestore} />}
      </div>
      {raw.map((row, index) => (
        <div class="pair" key={index}>
          <input
            class="mono pair-name"
            aria-label={`Name of ${noun} ${index + 1}`}
            placeholder="NAME"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            value={row.name}
            onInput={(event) => change(index, { name: event.currentTarget.value })}
            onPaste={(event) => {
              const pasted = assignments(event.clipboardData?.getData("text/plain") ?? "");
              if (pasted.length === 0 || row.name || row.value) return;
              event.preventDefault();
              type([...raw.slice(0, index), ...pasted, ...raw.slice(index + 1)]);
            }}
          />
          {row.origin ? (
            <span class="quiet origin-of" title={row.origin}>
              {row.origin}
            </span>
          ) : (
            <input
              class="mono"
              aria-label={`Value of ${row.name || `${noun} ${index + 1}`}`}
              placeholder="value"
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              value={row.value}
              onInput={(event) => change(index, { value: event.currentTarget.value })}
            />
          )}
          <button type="button" class="icon" aria-label={`Remove ${row.name || `${noun} ${index + 1}`}`} title="Remove" onClick={() => remove(index)}>
            <Icon of="close" />
          </button>
        </div>
      ))}
      <button type="button" class="add" onClick={() => add([{ name: "", value: "", origin: "" }])}>
        Add {noun}
      </button>
      {hint && <p class="hint">{hint}</p>}
      <Errors id={`${id}-errors`} of={all} />
    </div>
  );
}

/** The rows that say something. */
function named(rows: readonly PairRow[], noun: string, isUnique: boolean): PairRow[] {
  const filled = rows.filter(({ name, value, origin }) => name || value || origin);
  if (filled.some(({ name }) => !name)) throw new Error(`A ${noun} has no name.`);
  const names = filled.map(({ name }) => name);
  const twice = isUnique && names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new Error(`There are two with the name ${twice}.`);
  return filled;
}

/** Lines such as `export NAME=value` of a file or a terminal; none where one line is something else. */
export function assignments(text: string): PairRow[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line && !line.startsWith("#"));
  const rows = lines.map((line) => /^(?:export\s+)?([A-Za-z_][\w.]*)=(.*)$/.exec(line));
  if (rows.some((row) => row === null)) return [];
  return rows.map((row) => ({ name: row![1]!, value: row![2]!.replace(/^(["'])(.*)\1$/, "$2"), origin: "" }));
}
