// The logs of the nodes, followed.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { follow } from "../api";
import type { Node } from "../model";
import { Problem } from "../parts";
import { go, useLocation } from "../route";
import { KEPT, type Line, add, bySource } from "./log_lines";

const SOURCES = 16;
const SHOWN = 1000;

interface Source {
  path: string;
  label: string;
}

/** The containers with logs; the present pod of each node before those that it has replaced. */
export function sourcesOf(nodes: Node[]): Source[] {
  const present = new Map<string, string>();
  for (const node of nodes) if (!present.has(node.node)) present.set(node.node, node.uid);
  return nodes.flatMap((node) =>
    node.logs.map((container) => ({
      path: `${node.name}/${container}`,
      label:
        (node.logs.length > 1 ? `${node.node}/${container}` : node.node) +
        (present.get(node.node) === node.uid ? "" : ` (earlier: ${node.name})`),
    })),
  );
}

export function Logs({ namespace, nodes }: { namespace: string; nodes: Node[] }) {
  const all = sourcesOf(nodes);
  const { path, query } = useLocation();
  const chosen = query.get("node") ?? "";
  const text = query.get("q") ?? "";
  const isSplit = query.get("view") === "split";
  const set = (name: string, value: string) => {
    if (value) query.set(name, value);
    else query.delete(name);
    go(query.size > 0 ? `${path}?${query}` : path, "replace");
  };
  const known = all.some((source) => source.path === chosen) ? chosen : "";
  const followed = (known ? all.filter((source) => source.path === known) : all.slice(0, SOURCES)).map(
    (source) => source.path,
  );
  const { lines, ended, dropped, problem } = useLines(namespace, followed);
  const label = new Map(all.map((source) => [source.path, source.label]));
  const labels = followed.map((source) => label.get(source) ?? source);
  if (all.length === 0) return <p class="nothing">No container has started yet.</p>;
  return (
    <section class="logs" aria-label="Logs">
      <div class="filters">
        <label>
          <span>Node</span>
          <select value={known} onChange={(event) => set("node", event.currentTarget.value)}>
            <option value="">{all.length > SOURCES ? `first ${SOURCES} of ${all.length}` : "all"}</option>
            {all.map((source) => (
              <option key={source.path} value={source.path}>
                {source.label}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Only lines with</span>
          <input type="search" value={text} onInput={(event) => set("q", event.currentTarget.value)} />
        </label>
        {followed.length > 1 && (
          <label>
            <span>Nodes are</span>
            <select value={isSplit ? "split" : ""} onChange={(event) => set("view", event.currentTarget.value)}>
              <option value="">in one log</option>
              <option value="split">side by side</option>
            </select>
          </label>
        )}
      </div>
      {problem && <Problem>{problem}</Problem>}
      {dropped > 0 && <p class="quiet">{dropped} lines came faster than they could be shown, and are left out.</p>}
      {isSplit && followed.length > 1 ? (
        <SideBySide lines={lines} text={text} labels={labels} />
      ) : (
        <Screen lines={lines} text={text} labels={labels} />
      )}
      {[...ended].map(
        ([source, reason]) =>
          reason && (
            <p class="quiet" key={source}>
              {label.get(followed[source] ?? "")}: {reason}
            </p>
          ),
      )}
    </section>
  );
}

function useLines(namespace: string, sources: string[]) {
  const [state, setState] = useState({ lines: [] as Line[], ended: new Map<number, string>(), dropped: 0, problem: "" });
  const key = sources.join(" ");
  useEffect(() => {
    let lines: Line[] = [];
    let ended = new Map<number, string>();
    let dropped = 0;
    let count = 0;
    let problem = "";
    let frame = 0;
    const show = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => setState({ lines, ended, dropped, problem }));
    };
    show();
    if (sources.length === 0) return () => cancelAnimationFrame(frame);
    const query = sources.map((source) => `source=${encodeURIComponent(source)}`).join("&");
    const stop = follow(`/api/logs/${encodeURIComponent(namespace)}?${query}`, {
      event({ name, data }) {
        if (name === "lines") {
          const news = data as { source: number; dropped: number; lines: [string, string][] };
          lines = add(lines, news.source, news.lines, count);
          count += news.lines.length;
          dropped += news.dropped;
        } else if (name === "end") {
          const end = data as { source: number; reason: string };
          ended = new Map(ended).set(end.source, end.reason);
        }
        show();
      },
      state(reason) {
        // A stream that opens begins with the last lines.
        if (!reason) [lines, ended, dropped] = [[], new Map<number, string>(), 0];
        problem = reason;
        show();
      },
      isOver: () => ended.size === sources.length,
    });
    return () => {
      cancelAnimationFrame(frame);
      stop();
    };
  }, [namespace, key]);
  return state;
}

interface Shown {
  lines: Line[];
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
