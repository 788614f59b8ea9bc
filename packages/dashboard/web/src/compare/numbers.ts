// Texts that are numbers, as parameters have them.

const NUMBER = /^[-+]?(\d[\d_]*\.?\d*|\.\d+)(e[-+]?\d+)?$/i;

/** The number that a text says; null for any other text. */
export function numberOf(text: string): number | null {
  if (text.length > 40 || !NUMBER.test(text)) return null;
  const number = Number(text.replaceAll("_", ""));
  return Number.isFinite(number) ? number : null;
}

/** Numbers by size, before texts by their letters, and what is missing last. */
export function compareTexts(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x !== null && y !== null) return x - y;
  if ((x === null) !== (y === null)) return x === null ? 1 : -1;
  return a.localeCompare(b, undefined, { numeric: true });
}
