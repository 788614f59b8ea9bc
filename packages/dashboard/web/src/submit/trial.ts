// Tries a text on the cluster once nobody has typed for a moment.

import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "../api";
import type { Wrong } from "./fields";

const PAUSE = 600;

export type Trial = { namespace: string; name: string } | { problem: string; errors?: Wrong[] };

export interface Verdict {
  /** `rest` is of what nobody has judged, and `none` of what need not be judged yet. */
  tone: "none" | "rest" | "good" | "bad";
  text: string;
  /** What is wrong, each at its field; "" is none of them. */
  errors: Wrong[];
}

const TRYING: Verdict = { tone: "rest", text: "Trying it on the cluster ...", errors: [] };

/** What the cluster would make of a text, or what is wrong with it. */
export function verdictOf(trial: Trial): Verdict {
  if (!("problem" in trial)) return { tone: "good", text: `The cluster would take it as ${trial.name} in ${trial.namespace}.`, errors: [] };
  const errors = trial.errors?.length ? trial.errors : [{ field: "", message: trial.problem }];
  const text = errors.map(({ field, message }) => (field ? `${field}: ${message}` : message)).join("\n");
  return { tone: "bad", text, errors };
}

/** The verdict of the last text, and whether it is about this one; answers to earlier ones are ignored. Null is not tried. */
export function useTrial(text: string | null): { verdict: Verdict; isCurrent: boolean } {
  const [state, setState] = useState({ verdict: TRYING, of: null as string | null });
  const number = useRef(0);
  useEffect(() => {
    const own = ++number.current;
    if (text === null) return;
    const show = (verdict: Verdict) => own === number.current && setState({ verdict, of: text });
    const timer = setTimeout(() => {
      request<Trial>("POST", "/api/trials", { yaml: text }).then(
        (trial) => show(verdictOf(trial)),
        (error: Error) => show({ tone: "rest", text: `It could not be tried: ${error.message}`, errors: [] }),
      );
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return { verdict: state.verdict, isCurrent: state.of === text };
}
