// The runtimes, which change seldom: they are asked for now and then.

import { usePolled } from "../polling";
import type { Runtime } from "../model";

const PAUSE = 60_000;

interface Runtimes {
  runtimes: Runtime[];
  /** What may not be listed. */
  problems: string[];
}

const NONE: Runtimes = { runtimes: [], problems: [] };

export function useRuntimes(): Runtimes & { isLoaded: boolean; problem: string } {
  const { value, problem } = usePolled<Runtimes>("/api/runtimes", PAUSE);
  return { ...(value ?? NONE), isLoaded: value !== null, problem };
}
