// The list in which trainings are chosen for a comparison.

import { useContext, useMemo, useState } from "preact/hooks";
import { HasHistory, useHistory } from "../history/store";
import { useListing } from "../list/store";
import { Problems, Tone } from "../parts";
import { Dialog } from "../shell/dialog";
import { Icon } from "../shell/icons";
import { toggled } from "../toggled";
import { type Choice, liveChoices, pastChoices } from "./choices";
import { COMPARED } from "./store";

/** Choices in the document; a search finds the others. */
const LISTED = 100;

interface PickerProperties {
  chosen: ReadonlySet<string>;
  onChange(chosen: ReadonlySet<string>): void;
  onClose(): void;
}

export function Picker({ chosen, onChange, onClose }: PickerProperties) {
  const hasHistory = useContext(HasHistory);
  const { rows, problem } = useListing();
  const [text, setText] = useState("");
  const [isPast, setPast] = useState(false);
  // Those of the beginning: a row does not move away from the pointer that checks it.
  const [first] = useState(chosen);
  const live = useMemo(() => liveChoices(rows.values(), text, first), [rows, text]);
  const room = COMPARED - chosen.size;
  const others = live.filter(({ id }) => !chosen.has(id));
  const list = (title: string, choices: readonly Choice[], more: string) => (
    <ChoiceList title={title} of={choices} more={more} chosen={chosen} isFull={room === 0} onToggle={(id) => onChange(toggled(chosen, id))} />
  );
  return (
    <Dialog class="training-picker" labelledBy="picker-title" isLight onClose={onClose}>
      <header>
        <h2 id="picker-title">Choose trainings</h2>
        <p role="status" class="quiet">
          {chosen.size} of {COMPARED} chosen{room === 0 && ": uncheck one to choose another"}
        </p>
      </header>
      <div class="ask">
        <Icon of="search" />
        <input
          type="search"
          aria-label="Search trainings"
          placeholder="Name, namespace, state, runtime or label"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        {text.trim() !== "" && !isPast && others.length > 1 && (
          <button type="button" disabled={others.length > room} title={others.length > room ? `${room} more can be compared` : undefined} onClick={() => onChange(new Set([...chosen, ...others.map(({ id }) => id)]))}>
            Choose all {others.length}
          </button>
        )}
      </div>
      {hasHistory && (
        <div class="sources" role="group" aria-label="Where they are">
          <button type="button" class="chip plain-chip" aria-pressed={!isPast} onClick={() => setPast(false)}>
            On the cluster
          </button>
          <button type="button" class="chip plain-chip" aria-pressed={isPast} onClick={() => setPast(true)}>
            Of the history
          </button>
        </div>
      )}
      <div class="choices" tabIndex={0} role="region" aria-label="Trainings">
        <Problems of={[problem]} />
        {isPast ? <PastList text={text} rows={rows} list={list} /> : list("On the cluster", live, text ? "No TrainJob has this." : "There is no TrainJob.")}
      </div>
      <footer class="actions">
        <button type="button" class="primary" onClick={onClose}>
          Done
        </button>
      </footer>
    </Dialog>
  );
}

interface PastListProperties {
  text: string;
  rows: ReturnType<typeof useListing>["rows"];
  list(title: string, choices: readonly Choice[], more: string): preact.ComponentChildren;
}

function PastList({ text, rows, list }: PastListProperties) {
  const query = useMemo(() => new URLSearchParams(text.trim() ? { q: text.trim() } : {}), [text]);
  const { trainings, note, problem, isLoaded } = useHistory(query);
  const choices = useMemo(() => pastChoices(trainings, rows.values()), [trainings, rows]);
  return (
    <>
      <Problems of={[problem]} />
      {list("Of the history", choices, isLoaded ? note || "The history has no other training." : "")}
    </>
  );
}

interface ChoiceListProperties {
  title: string;
  of: readonly Choice[];
  /** What is said where there is none. */
  more: string;
  chosen: ReadonlySet<string>;
  isFull: boolean;
  onToggle(id: string): void;
}

function ChoiceList({ title, of, more, chosen, isFull, onToggle }: ChoiceListProperties) {
  return (
    <section aria-label={title}>
      {of.length === 0 && <p class="quiet">{more}</p>}
      <ul>
        {of.slice(0, LISTED).map(({ id, namespace, name, state, detail, when }) => (
          <li key={id}>
            <label>
              <input type="checkbox" checked={chosen.has(id)} disabled={isFull && !chosen.has(id)} onChange={() => onToggle(id)} />
              <span class="name">
                {name} <span class="namespace">{namespace}</span>
              </span>
              <Tone of={state} />
              <span class="detail-text quiet">{detail}</span>
              <span class="when quiet">{when}</span>
            </label>
          </li>
        ))}
      </ul>
      {of.length > LISTED && <p class="quiet">{of.length - LISTED} more: type a part of a name to find them.</p>}
    </section>
  );
}
