// Lines of logs, of all nodes or one, in one log or side by side, with a search.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { go, useLocation } from "../route";
import { KEPT, type Line, bySource } from "./log_lines";

/** Containers whose logs are shown together; the server gives no more. */
export const SOURCES = 16;
const SHOWN = 1000;

/** A container with a log. */
export interface Source {
  path: string;
  label: string;
}

/** What is shown of logs; all of it is in the address. */
interface LogChoice {
  /** The one whose log alone is shown; null for all. */
  source: Source | null;
  text: string;
  isSplit: boolean;
  set(name: "node" | "q" | "view", value: string): void;
}

export function useLogChoice(all: readonly Source[]): LogChoice {
  const { path, query } = useLocation();
  return {
    source: all.find((source) => source.path === query.get("node")) ?? null,
    text: query.get("q") ?? "",
    isSplit: query.get("view") === "split",
    set(name, value) {
      if (value) query.set(name, value);
      else query.delete(name);
      go(query.size > 0 ? `${path}?${query}` : path, "replace");
    },
  };
}

interface LogViewProperties {
  all: readonly Source[];
  choice: LogChoice;
  /** Those whose lines there are. */
  shown: readonly Source[];
  lines: readonly Line[];
  /** Above the lines. */
  notes?: ComponentChildren;
  /** Below the lines. */
  children?: ComponentChildren;
}

export function LogView({ all, choice, shown, lines, notes, children }: LogViewProperties) {
  const { source, text, isSplit, set } = choice;
  const labels = shown.map(({ label }) => label);
  return (
    <section class="logs" aria-label="Logs">
      <div class="filters">
        <label>
          <span>Node</span>
          <select value={source?.path ?? ""} onChange={(event) => set("node", event.currentTarget.value)}>
            <option value="">{!source && shown.length < all.length ? `first ${shown.length} of ${all.length}` : "all"}</option>
            {all.map(({ path, label }) => (
              <option key={path} value={path}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Only lines with</span>
          <input type="search" value={text} onInput={(event) => set("q", event.currentTarget.value)} />
        </label>
        {shown.length > 1 && (
          <label>
            <span>Nodes are</span>
            <select value={isSplit ? "split" : ""} onChange={(event) => set("view", event.currentTarget.value)}>
              <option value="">in one log</option>
              <option value="split">side by side</option>
            </select>
          </label>
        )}
      </div>
      {notes}
      {isSplit && shown.length > 1 ? (
        <SideBySide lines={lines} text={text} labels={labels} />
      ) : (
        <Screen lines={lines} text={text} labels={labels} />
      )}
      {children}
    </section>
  );
}

interface Shown {
  lines: readonly Line[];
  text: string;
  labels: string[];
}

function SideBySide({ lines, text, labels }: Shown) {
  const own = useMemo(() => bySource(lines, labels.length), [lines, labels.length]);
  return (
    <div class="panes">
      {labels.map((label, index) => (
        <section key={label}>
          <h3 class={`source-${index % 6}`}>{label}</h3>
          <Screen lines={own[index]!} text={text} labels={[label]} />
        </section>
      ))}
    </div>
  );
}

function Screen({ lines, text, labels }: Shown) {
  const screen = useRef<HTMLDivElement>(null);
  const [isFollowing, setFollowing] = useState(true);
  const found = useMemo(() => {
    const wanted = text.toLowerCase();
    return wanted ? lines.filter((line) => line.text.toLowerCase().includes(wanted)) : lines;
  }, [lines, text]);
  const shown = found.slice(-SHOWN);
  useEffect(() => {
    if (isFollowing && screen.current) screen.current.scrollTop = screen.current.scrollHeight;
  }, [shown, isFollowing]);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = screen.current!;
    setFollowing(scrollHeight - scrollTop - clientHeight < 40);
  };
  return (
    <>
      <div class="screen" ref={screen} onScroll={onScroll} tabIndex={0} role="log" aria-live="off" aria-label={labels.length === 1 ? `Log lines of ${labels[0]}` : "Log lines"}>
        {shown.map((line) => (
          <div class="line" key={line.id}>
            {labels.length > 1 && <span class={`source source-${line.source % 6}`}>{labels[line.source]}</span>}
            <span class="text" title={line.stamp}>
              {line.text}
            </span>
          </div>
        ))}
      </div>
      <p class="count">
        {found.length > SHOWN ? `the last ${SHOWN} of ` : ""}
        {found.length} {text ? "matching " : ""}lines{lines.length === KEPT ? `, of the last ${KEPT}` : ""}
        {!isFollowing && (
          <button type="button" class="plain" onClick={() => setFollowing(true)}>
            Go on with the newest
          </button>
        )}
      </p>
    </>
  );
}
