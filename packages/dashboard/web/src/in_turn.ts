// Requests of one kind, of which the server answers only some at once.

/** A place to do things in their order, some at once; what fails holds up nothing. */
export function inTurn(atOnce: number): <T>(what: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let free = atOnce;
  return async (what) => {
    if (free > 0) free--;
    else await new Promise<void>((begin) => waiting.push(begin));
    try {
      return await what();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}
