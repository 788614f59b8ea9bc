// Lines of logs, of all nodes or one, in one log or side by side, with a search.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { fileName } from "../charts/arrangement";
import { PictureButton, save } from "../charts/buttons";
import { go, useLocation } from "../route";
import { copy } from "../shell/copy";
import { LogLine } from "./log_line";
import { KEPT, type Line, bySource, having } from "./log_lines";

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
  /** Whether lines without the text are left out; else it is only marked. */
  isFiltered: boolean;
  hasTimes: boolean;
  isWrapped: boolean;
  set(name: "node" | "q" | "view" | "find" | "times" | "wrap", value: string): void;
}

export function useLogChoice(all: readonly Source[]): LogChoice {
  const { path, query } = useLocation();
  return {
    source: all.find((source) => source.path === query.get("node")) ?? null,
    text: query.get("q") ?? "",
    isSplit: query.get("view") === "split",
    isFiltered: query.get("find") !== "marks",
    hasTimes: query.get("times") === "on",
    isWrapped: query.get("wrap") !== "off",
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
  const { source, text, isSplit, isFiltered, hasTimes, isWrapped, set } = choice;
  const labels = shown.map(({ label }) => label);
  return (
    <section class="logs" aria-label="Logs">
      <div class="filters">
        <label>
          <span>Node</span>
          <select value={source?.path ?? ""} onChange={(event) => set("node", event.currentTarget.value)}>
            <option value="">{!source && shown.length < all.length ? `First ${shown.length} of ${all.length}` : "All nodes"}</option>
            {all.map(({ path, label }) => (
              <option key={path} value={path}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>{isFiltered ? "Only lines with" : "Find"}</span>
          <input
            type="search"
            placeholder={isFiltered ? "Only lines with" : "Find"}
            value={text}
            onInput={(event) => set("q", event.currentTarget.value)}
          />
        </label>
        {shown.length > 1 && (
          <label>
            <span>Nodes are</span>
            <select value={isSplit ? "split" : ""} onChange={(event) => set("view", event.currentTarget.value)}>
              <option value="">In one log</option>
              <option value="split">Side by side</option>
            </select>
          </label>
        )}
        <label class="check">
          <input type="checkbox" checked={isFiltered} onChange={(event) => set("find", event.currentTarget.checked ? "" : "marks")} />
          <span>Filter</span>
        </label>
        <label class="check">
          <input type="checkbox" checked={hasTimes} onChange={(event) => set("times", event.currentTarget.checked ? "on" : "")} />
          <span>Times</span>
        </label>
        <label class="check">
          <input type="checkbox" checked={isWrapped} onChange={(event) => set("wrap", event.currentTarget.checked ? "" : "off")} />
          <span>Wrap</span>
        </label>
      </div>
      {notes}
      {isSplit && shown.length > 1 ? (
        <SideBySide lines={lines} choice={choice} labels={labels} />
      ) : (
        <Screen lines={lines} choice={choice} labels={labels} />
      )}
      {children}
    </section>
  );
}

interface Shown {
  lines: readonly Line[];
  choice: LogChoice;
  labels: string[];
}

function SideBySide({ lines, choice, labels }: Shown) {
  const own = useMemo(() => bySource(lines, labels.length), [lines, labels.length]);
  return (
    <div class="panes">
      {labels.map((label, index) => (
        <section key={label}>
          <h3 class={`source-${index % 6}`}>{label}</h3>
          <Screen lines={own[index]!} choice={choice} labels={[label]} />
        </section>
      ))}
    </div>
  );
}

function Screen({ lines, choice, labels }: Shown) {
  const { text, isFiltered, hasTimes, isWrapped } = choice;
  const screen = useRef<HTMLDivElement>(null);
  const [isFollowing, setFollowing] = useState(true);
  const [current, setCurrent] = useState(-1);
  const wanted = text.toLowerCase();
  const isMatch = useMemo(() => having(wanted), [wanted]);
  const found = useMemo(() => (wanted && isFiltered ? lines.filter(isMatch) : lines), [lines, isMatch, isFiltered]);
  const visible = useMemo(() => found.slice(-SHOWN), [found]);
  // Only lines that are shown can be walked to.
  const stops = useMemo(() => (wanted ? visible.filter((line) => line.id >= 0 && isMatch(line)).map(({ id }) => id) : []), [visible, isMatch]);
  const follow = () => {
    setFollowing(true);
    setCurrent(-1);
  };
  useEffect(() => {
    if (isFollowing && screen.current) screen.current.scrollTop = screen.current.scrollHeight;
  }, [visible, isFollowing]);
  useEffect(() => {
    if (current >= 0) screen.current?.querySelector(`[data-line="${current}"]`)?.scrollIntoView({ block: "center" });
  }, [current]);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = screen.current!;
    setFollowing(scrollHeight - scrollTop - clientHeight < 40);
  };
  const place = stops.indexOf(current);
  const walk = (by: number) => {
    if (stops.length === 0) return;
    setFollowing(false);
    setCurrent(stops[place < 0 ? (by < 0 ? stops.length - 1 : 0) : (place + by + stops.length) % stops.length]!);
  };
  const content = () => found.map((line) => [line.stamp, labels.length > 1 ? labels[line.source] : "", line.text].filter(Boolean).join(" ")).join("\n") + "\n";
  const name = labels.length === 1 ? labels[0]! : "logs";
  return (
    <>
      <div class="log-tools">
        <p class="count">
          {found.length > SHOWN ? `the last ${SHOWN} of ` : ""}
          {found.length} {wanted && isFiltered ? "matching " : ""}{found.length === 1 ? "line" : "lines"}{lines.length === KEPT ? `, of the last ${KEPT}` : ""}
        </p>
        {wanted && (
          <div class="matches" role="group" aria-label="Matches">
            <PictureButton picture="up" label="Previous match" isDisabled={stops.length === 0} onClick={() => walk(-1)} />
            <PictureButton picture="down" label="Next match" isDisabled={stops.length === 0} onClick={() => walk(1)} />
            <span class="quiet" role="status">
              {place < 0 ? `${stops.length} with a match` : `${place + 1} of ${stops.length}`}
            </span>
          </div>
        )}
        <div class="log-buttons">
          {!isFollowing && (
            <button type="button" onClick={follow}>
              Follow the newest
            </button>
          )}
          <button type="button" disabled={found.length === 0} onClick={() => void copy(content(), "the lines")}>
            Copy
          </button>
          <button type="button" disabled={found.length === 0} onClick={() => save(fileName(name, "log"), new Blob([content()], { type: "text/plain" }))}>
            Download
          </button>
        </div>
      </div>
      <div
        class={`screen${isWrapped ? "" : " unwrapped"}`}
        ref={screen}
        onScroll={onScroll}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={labels.length === 1 ? `Log lines of ${labels[0]}` : "Log lines"}
      >
        {visible.map((line) => (
          <LogLine
            key={line.id}
            line={line}
            label={labels.length > 1 ? labels[line.source]! : ""}
            hasTime={hasTimes}
            wanted={wanted}
            isCurrent={line.id === current}
          />
        ))}
      </div>
    </>
  );
}
