// A new TrainJob, which begins as a copy of another, and is tried on the cluster as it is typed.

import { useEffect, useRef, useState } from "preact/hooks";
import { request, trainJobPath } from "../api";
import { Back, Problem, useTitle } from "../parts";
import { go, jobPath } from "../route";

const PAUSE = 600;

interface Place {
  namespace: string;
  name: string;
}

export function NewPage({ namespace, name }: Place) {
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const verdict = useTrial(text);
  useTitle(`New TrainJob from ${name}`);
  useEffect(() => {
    request<{ yaml: string }>("GET", `${trainJobPath({ namespace, name })}/copy`).then(
      ({ yaml }) => setText(yaml),
      (error: Error) => setProblem(error.message),
    );
  }, [namespace, name]);
  async function create(): Promise<void> {
    setBusy(true);
    setProblem("");
    try {
      const made = await request<Place>("POST", "/api/trainjobs", { yaml: text });
      go(jobPath(made.namespace, made.name));
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  }
  return (
    <main>
      <Back to={jobPath(namespace, name)}>{name}</Back>
      <h1 tabIndex={-1}>New TrainJob</h1>
      <p class="quiet">A copy of {name}, without its state and what queues have added. It is tried on the cluster as you type; nothing is stored until you create it.</p>
      {problem && <Problem>{problem}</Problem>}
      {text !== null && (
        <>
          <label class="editor">
            <span>YAML</span>
            <textarea
              class="yaml"
              spellcheck={false}
              autocomplete="off"
              aria-describedby="verdict"
              value={text}
              rows={28}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
          <p id="verdict" role="status" class={`verdict ${verdict.tone}`}>
            {verdict.text}
          </p>
          <div class="actions">
            <button type="button" disabled={isBusy || verdict.tone === "bad"} onClick={() => void create()}>
              Create
            </button>
          </div>
        </>
      )}
    </main>
  );
}

type Trial = Place | { problem: string };

interface Verdict {
  tone: "rest" | "good" | "bad";
  text: string;
}

/** What the cluster would make of a text, or what is wrong with it. */
export function verdictOf(trial: Trial): Verdict {
  if ("problem" in trial) return { tone: "bad", text: trial.problem };
  return { tone: "good", text: `The cluster would take it as ${trial.name} in ${trial.namespace}.` };
}

/** Tries a text once nobody has typed for a moment; answers to earlier texts are ignored. */
function useTrial(text: string | null): Verdict {
  const [verdict, setVerdict] = useState<Verdict>({ tone: "rest", text: "" });
  const number = useRef(0);
  useEffect(() => {
    if (text === null) return;
    const own = ++number.current;
    setVerdict((before) => ({ ...before, tone: "rest", text: before.text || "Trying ..." }));
    const show = (next: Verdict) => {
      if (own === number.current) setVerdict(next);
    };
    const timer = setTimeout(() => {
      request<Trial>("POST", "/api/trials", { yaml: text }).then(
        (trial) => show(verdictOf(trial)),
        (error: Error) => show({ tone: "rest", text: `It could not be tried: ${error.message}` }),
      );
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return verdict;
}
