// What somebody types, while it is not, or not in the same words, what the TrainJob has.

import { useRef, useState } from "preact/hooks";
import { isSame } from "./rewrite";

interface Raw<R> {
  raw: R;
  /** Why the TrainJob does not have it; "" when it does. */
  problem: string;
  type(raw: R): void;
}

/**
 * Keeps what is typed as long as it means what the TrainJob has, or nothing at all; what changes elsewhere takes its place.
 *
 * @param format what is shown of a value at first.
 * @param parse what is meant by what is typed; throws an Error with a sentence where it means nothing.
 */
export function useRaw<T, R>(value: T, format: (value: T) => R, parse: (raw: R) => T, onValue: (value: T) => void): Raw<R> {
  const [typed, setTyped] = useState<R>(() => format(value));
  const before = useRef(value);
  const [meant, problem] = attempt(parse, typed);
  const isKept = problem ? isSame(before.current, value) : isSame(meant, value);
  const raw = isKept ? typed : format(value);
  if (!problem || !isKept) before.current = value;
  return {
    raw,
    problem: isKept ? problem : "",
    type(next) {
      before.current = value;
      setTyped(next);
      const [result, wrong] = attempt(parse, next);
      if (!wrong && !isSame(result, value)) onValue(result as T);
    },
  };
}

function attempt<T, R>(parse: (raw: R) => T, raw: R): [value: T | undefined, problem: string] {
  try {
    return [parse(raw), ""];
  } catch (error) {
    return [undefined, (error as Error).message];
  }
}
