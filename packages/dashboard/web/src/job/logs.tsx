// The logs of the nodes, followed.

import { useEffect, useState } from "preact/hooks";
import { follow } from "../api";
import type { Node } from "../model";
import { Problem } from "../parts";
import { type Line, add, unfinished } from "./log_lines";
import { LogView, SOURCES, type Source, useLogChoice } from "./log_view";

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
  const choice = useLogChoice(all);
  const followed = choice.source ? [choice.source] : all.slice(0, SOURCES);
  const { lines, ended, dropped, problem } = useLines(namespace, followed.map(({ path }) => path));
  if (all.length === 0) return <p class="nothing">No container has started yet.</p>;
  const notes = (
    <>
      {problem && <Problem>{problem}</Problem>}
      {dropped > 0 && <p class="quiet">{dropped} lines came faster than they could be shown, and are left out.</p>}
    </>
  );
  return (
    <LogView all={all} choice={choice} shown={followed} lines={lines} notes={notes}>
      {[...ended].map(
        ([source, reason]) =>
          reason && (
            <p class="quiet" key={source}>
              {followed[source]?.label}: {reason}
            </p>
          ),
      )}
    </LogView>
  );
}

function useLines(namespace: string, sources: string[]) {
  const [state, setState] = useState({ lines: [] as Line[], ended: new Map<number, string>(), dropped: 0, problem: "" });
  const key = sources.join(" ");
  useEffect(() => {
    let lines: Line[] = [];
    // Of each source, the line that is written over and has not ended.
    const states = new Map<number, Line>();
    let ended = new Map<number, string>();
    let dropped = 0;
    let count = 0;
    let problem = "";
    let frame = 0;
    const show = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => setState({ lines: [...lines, ...states.values()], ended, dropped, problem }));
    };
    show();
    if (sources.length === 0) return () => cancelAnimationFrame(frame);
    const query = sources.map((source) => `source=${encodeURIComponent(source)}`).join("&");
    const stop = follow(`/api/logs/${encodeURIComponent(namespace)}?${query}`, {
      event({ name, data }) {
        if (name === "lines") {
          const news = data as { source: number; dropped: number; lines: [string, string][] };
          lines = add(lines, news.source, news.lines, count);
          states.delete(news.source);
          count += news.lines.length;
          dropped += news.dropped;
        } else if (name === "state") {
          const { source, line } = data as { source: number; line: [string, string] };
          states.set(source, unfinished(source, line));
        } else if (name === "end") {
          const end = data as { source: number; reason: string };
          states.delete(end.source);
          ended = new Map(ended).set(end.source, end.reason);
        }
        show();
      },
      state(reason) {
        // A stream that opens begins with the last lines.
        if (!reason) {
          [lines, ended, dropped] = [[], new Map<number, string>(), 0];
          states.clear();
        }
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
