// The runtimes, which change seldom: they are asked for now and then.

import type { Runtime } from "../model";
import { usePolled } from "../polling";

const PAUSE = 60_000;

interface Runtimes {
  runtimes: Runtime[];
  /** What may not be listed. */
  problems: string[];
  /** Which namespaces are left out. */
  notes: string[];
}

const NONE: Runtimes = { runtimes: [], problems: [], notes: [] };

export function useRuntimes(): Runtimes & { isLoaded: boolean; problem: string } {
  const { value, problem } = usePolled<Runtimes>("/api/runtimes", PAUSE);
  return { ...(value ?? NONE), isLoaded: value !== null, problem };
}
