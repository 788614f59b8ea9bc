// Names with values, such as variables, in rows.

import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "../shell/icons";
import { Errors, Restore, type Setting } from "./inputs";
import { useRaw } from "./raw";

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

export function Pairs({ title, noun, rows, isUnique, errors, onRestore, before, onRows }: PairsProperties) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const focused = useRef<number | null>(null);
  const { raw, problem, type } = useRaw<PairRow[], PairRow[]>([...rows], (all) => all, (all) => named(all, noun, Boolean(isUnique)), onRows);
  const replace = (index: number, further: PairRow[]) => type([...raw.slice(0, index), ...further, ...raw.slice(index + 1)]);
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
        <Row
          key={index}
          row={row}
          called={`${noun} ${index + 1}`}
          onRows={(further) => replace(index, further)}
          onRemove={() => {
            replace(index, []);
            list.current?.querySelector<HTMLButtonElement>("button.add")?.focus();
          }}
        />
      ))}
      <button
        type="button"
        class="add"
        onClick={() => {
          focused.current = raw.length;
          type([...raw, { name: "", value: "", origin: "" }]);
        }}
      >
        Add {noun}
      </button>
      <Errors id={`${id}-errors`} of={all} />
    </div>
  );
}

interface RowProperties {
  row: PairRow;
  /** What it is called while it has no name. */
  called: string;
  /** Puts rows in its place. */
  onRows(rows: PairRow[]): void;
  onRemove(): void;
}

const PLAIN = { autocomplete: "off", autocapitalize: "off", spellcheck: false } as const;

function Row({ row, called, onRows, onRemove }: RowProperties) {
  const onPaste = (event: ClipboardEvent) => {
    const pasted = assignments(event.clipboardData?.getData("text/plain") ?? "");
    if (pasted.length === 0 || row.name || row.value) return;
    event.preventDefault();
    onRows(pasted);
  };
  return (
    <div class="pair">
      <input
        {...PLAIN}
        class="mono pair-name"
        aria-label={`Name of ${called}`}
        placeholder="name"
        value={row.name}
        onInput={(event) => onRows([{ ...row, name: event.currentTarget.value }])}
        onPaste={onPaste}
      />
      {row.origin ? (
        <span class="quiet origin-of" title={row.origin}>
          {row.origin}
        </span>
      ) : (
        <input
          {...PLAIN}
          class="mono"
          aria-label={`Value of ${row.name || called}`}
          placeholder="value"
          value={row.value}
          onInput={(event) => onRows([{ ...row, value: event.currentTarget.value }])}
        />
      )}
      <button type="button" class="icon" aria-label={`Remove ${row.name || called}`} title="Remove" onClick={onRemove}>
        <Icon of="close" />
      </button>
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
