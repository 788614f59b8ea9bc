// The inputs of the form, each with its title, what it is without, and what is wrong with it.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
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

export function Restore({ title, before, onRestore }: { title: string; before: string; onRestore(): void }) {
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
