// The command palette: a search of TrainJobs, pages and actions that the keyboard alone can use.

import { useEffect, useMemo, useState } from "preact/hooks";
import { useListing } from "../list/store";
import type { Cluster } from "../login";
import { type Route, comparePath, clonePath, go, jobPath, newPath } from "../route";
import { THEMES, setTheme } from "../theme";
import { copy } from "./copy";
import { Dialog } from "./dialog";
import { type Entry, matching, trainJobs } from "./entries";
import { viewsOf } from "./header";
import { Icon } from "./icons";

interface PaletteProperties {
  route: Route;
  cluster: Cluster;
  onClose(): void;
}

export function Palette({ route, cluster, onClose }: PaletteProperties) {
  const { rows } = useListing();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const fixed = useMemo(() => [...pages(cluster), ...actions(route)], [cluster, route]);
  const jobs = useMemo(() => trainJobs(rows.values(), (row) => open(jobPath(row.namespace, row.name))), [rows]);
  const found = useMemo(() => matching([...fixed, ...jobs], text), [fixed, jobs, text]);
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => {
    document.getElementById(`entry-${chosen}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const run = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((chosen + step + found.length) % Math.max(found.length, 1));
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog class="palette" label="Search and commands" isLight onClose={onClose}>
      <div class="ask">
        <Icon of="search" />
        <input
          type="text"
          role="combobox"
          aria-label="Search TrainJobs, pages and actions"
          aria-expanded={found.length > 0}
          aria-controls="entries"
          aria-autocomplete="list"
          aria-activedescendant={chosen >= 0 ? `entry-${chosen}` : undefined}
          placeholder="Search TrainJobs, pages and actions"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => (setText(event.currentTarget.value), setAt(0))}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <Entries of={found} chosen={chosen} onRun={run} />
      <p class="unseen" aria-live="polite">
        {found.length === 0 ? "Nothing matches" : `${found.length} found`}
      </p>
    </Dialog>
  );
}

function Entries({ of, chosen, onRun }: { of: readonly Entry[]; chosen: number; onRun(entry: Entry): void }) {
  if (of.length === 0) return <p class="nothing">Nothing matches.</p>;
  const groups = [...new Set(of.map(({ group }) => group))];
  return (
    <div id="entries" class="entries" role="listbox" aria-label="Found" tabIndex={-1}>
      {groups.map((group) => (
        <div key={group} role="group" aria-label={group}>
          <p class="group" aria-hidden="true">
            {group}
          </p>
          {of.map(
            (entry, index) =>
              entry.group === group && (
                <div
                  key={entry.key}
                  id={`entry-${index}`}
                  role="option"
                  class="entry"
                  aria-selected={index === chosen}
                  onClick={() => onRun(entry)}
                >
                  <span>{entry.title}</span>
                  <span class="quiet">{entry.detail}</span>
                </div>
              ),
          )}
        </div>
      ))}
    </div>
  );
}

function open(path: string): void {
  go(path);
  window.scrollTo(0, 0);
}

function pages(cluster: Cluster): Entry[] {
  const views = viewsOf(cluster);
  const named = [...views.map(([address, title]) => [address, title] as const), [newPath(), "New TrainJob"] as const, [comparePath([]), "Compare TrainJobs"] as const];
  return named.map(([address, title]) => ({ key: address, group: "Pages", title, detail: "", run: () => open(address) }));
}

function actions(route: Route): Entry[] {
  const made = (title: string, run: () => void, detail = ""): Entry => ({ key: title, group: "Actions", title, detail, run });
  const found = [
    ...THEMES.map((theme) => made(`Theme: ${theme}`, () => setTheme(theme))),
    made("Copy the address of this view", () => void copy(`${location.origin}${location.pathname}${location.search}`, "the address")),
  ];
  if (route.view !== "job") return found;
  const { namespace, name } = route;
  return [
    made("Logs", () => open(jobPath(namespace, name, "logs")), name),
    made("YAML", () => open(jobPath(namespace, name, "yaml")), name),
    made("Compare with others", () => open(comparePath([route])), name),
    made("Clone and edit", () => open(clonePath(route)), name),
    made("Copy the command that follows the log", () => void copy(`trainer logs ${name} -n ${namespace} --follow`, "the command"), name),
    ...found,
  ];
}
