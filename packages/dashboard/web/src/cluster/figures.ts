// Amounts as the page of the cluster shows them: no more digits than somebody compares.

import { amount } from "../format";

const UNCOUNTED = new Set(["memory"]);

/** `3.75`, `48.8`, `1,344`, `2 TiB`. */
export function figure(resource: string, value: number | null): string {
  if (value === null) return "";
  if (UNCOUNTED.has(resource)) return amount(resource, value);
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** Likewise, of what is measured and changes all the time: `7.1`, `84`. */
export function measured(resource: string, value: number): string {
  return resource === "cpu" && value < 10 ? value.toLocaleString("en", { maximumFractionDigits: 1 }) : figure(resource, Math.round(value));
}
