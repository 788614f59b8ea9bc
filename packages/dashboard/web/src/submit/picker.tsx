// The choice of a runtime, from those that one may see, with what each of them has.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { CLUSTER_WIDE, type Runtime } from "../model";
import { href, runtimePath } from "../route";
import { searched } from "../search";
import { Icon } from "../shell/icons";
import type { RuntimeRef } from "./fields";
import { Field, type Setting, described } from "./inputs";

interface PickerProperties extends Setting {
  runtimes: readonly Runtime[];
  /** Why some cannot be seen. */
  problems: readonly string[];
  isLoaded: boolean;
  namespace: string;
  chosen: RuntimeRef;
  found: Runtime | undefined;
  onChoice(runtime: RuntimeRef): void;
}

/** What a runtime brings, in a few words. */
export function summary({ framework, nodes, devices }: Runtime): string {
  const parts = [framework, `${nodes} ${nodes === 1 ? "node" : "nodes"}`, devices > 0 ? `${devices} ${devices === 1 ? "GPU" : "GPUs"} per node` : "no GPUs"];
  return parts.filter(Boolean).join(" · ");
}

/** Those that a TrainJob of a namespace can build on, and that match; deprecated ones come last. */
export function choices(runtimes: readonly Runtime[], namespace: string, text: string): Runtime[] {
  const has = searched(text);
  const isMatch = ({ name, framework, image, description }: Runtime) => has(`${name} ${framework} ${image} ${description}`);
  const usable = runtimes.filter((each) => (each.kind === CLUSTER_WIDE || each.namespace === namespace) && isMatch(each));
  return [...usable.filter(({ support }) => !support), ...usable.filter(({ support }) => support)];
}

export function RuntimePicker({ runtimes, problems, isLoaded, namespace, chosen, found, onChoice, ...setting }: PickerProperties) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const shown = choices(runtimes, namespace, text);
  const current = Math.min(at, shown.length - 1);
  useEffect(() => {
    if (isOpen) document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: "nearest" });
  }, [isOpen, current]);
  const open = () => {
    if (isOpen) return;
    setText("");
    setAt(Math.max(0, choices(runtimes, namespace, "").findIndex((each) => each === found)));
    setOpen(true);
  };
  const choose = (runtime: Runtime) => {
    onChoice({ name: runtime.name, kind: runtime.kind });
    setOpen(false);
  };
  const leave = () => {
    setOpen(false);
    // Whoever may not list runtimes knows the name of one.
    if (text && shown.length === 0) onChoice({ name: text.trim(), kind: chosen.kind });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && !isOpen) open();
    else if (step) setAt((current + step + shown.length) % Math.max(shown.length, 1));
    else if (event.key === "Enter" && isOpen) shown[current] ? choose(shown[current]) : leave();
    else if (event.key === "Escape" && isOpen) (setText(""), setOpen(false));
    else return;
    event.preventDefault();
  };
  return (
    <Field id={id} {...setting} hint={found ? <Found of={found} /> : hintOf(chosen, isLoaded, problems)}>
      <div class={`runtime-picker${isOpen ? " open" : ""}`}>
        <input
          {...described(id, { ...setting, hint: "found" })}
          ref={input}
          type="text"
          role="combobox"
          aria-expanded={isOpen}
          aria-controls={`${id}-options`}
          aria-autocomplete="list"
          aria-activedescendant={isOpen && current >= 0 ? `${id}-${current}` : undefined}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder={chosen.name || "Choose a runtime"}
          value={isOpen ? text : chosen.name}
          onClick={open}
          onInput={(event) => (open(), setText(event.currentTarget.value), setAt(0))}
          onKeyDown={onKeyDown}
          onBlur={leave}
        />
        <Icon of="down" />
        <div id={`${id}-options`} class="runtime-options" role="listbox" aria-label="Runtimes" hidden={!isOpen || shown.length === 0}>
          {shown.map((each, index) => (
            <div
              key={`${each.kind} ${each.namespace} ${each.name}`}
              id={`${id}-${index}`}
              class="option"
              role="option"
              aria-selected={index === current}
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => choose(each)}
            >
              <span class="option-name">
                {each.name} {each.namespace && <span class="tag">{each.namespace}</span>}
                {each.support && <span class="tag warn">{each.support}</span>}
              </span>
              {each.description && <span class="option-text">{each.description}</span>}
              <span class="option-text quiet">
                {summary(each)}
                {each.image && ` · ${each.image}`}
              </span>
            </div>
          ))}
        </div>
        {isOpen && shown.length === 0 && (
          <p class="runtime-options nothing">{text ? `None matches. Enter takes the name ${text.trim()}.` : "There are no runtimes that you may see."}</p>
        )}
      </div>
    </Field>
  );
}

function Found({ of }: { of: Runtime }) {
  return (
    <>
      {of.support && <span class="tag warn">{of.support}</span>}
      {of.description && <span class="found-text">{of.description}</span>}
      <span class="found-text">
        {summary(of)}
        {of.image && (
          <>
            {" · "}
            <span class="mono">{of.image}</span>
          </>
        )}
        {" · "}
        <a href={href(runtimePath(of))} target="_blank" rel="noopener">
          details
        </a>
      </span>
    </>
  );
}

function hintOf(chosen: RuntimeRef, isLoaded: boolean, problems: readonly string[]): string {
  if (!isLoaded) return "Loading the runtimes ...";
  if (problems.length > 0) return problems.join(" ");
  return chosen.name ? `There is no runtime ${chosen.name} that you may see here.` : "It decides what runs where this TrainJob says nothing else.";
}
