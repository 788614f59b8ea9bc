// Values as people read them.

const UNITS: [string, number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
];

/** `42s`, `3m 5s`, `13m`, `9d 5h`: two units while the first is small. */
export function duration(seconds: number): string {
  const whole = Math.max(Math.floor(seconds), 0);
  for (const [index, [unit, size]] of UNITS.entries()) {
    if (whole < size) continue;
    const count = Math.floor(whole / size);
    const next = UNITS[index + 1];
    const rest = next ? Math.floor((whole % size) / next[1]) : 0;
    return next && rest && count < 10 ? `${count}${unit} ${rest}${next[0]}` : `${count}${unit}`;
  }
  return "0s";
}

export function age(since: string | null | undefined, now: number): string {
  const moment = since ? Date.parse(since) : NaN;
  return Number.isNaN(moment) ? "" : duration((now - moment) / 1000);
}

const EXACT: Intl.DateTimeFormatOptions = {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
};

/** A date and time of the reader's zone, which it names. */
export function moment(time: string | null | undefined): string {
  return formatted(time, EXACT);
}

/** A date and time of the reader's zone to the minute, for where `zone` says which one that is. */
export function minute(time: string | null | undefined): string {
  return formatted(time, { dateStyle: "medium", timeStyle: "short" });
}

function formatted(time: string | null | undefined, options: Intl.DateTimeFormatOptions): string {
  const date = new Date(time ?? NaN);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString(undefined, options);
}

/** The reader's zone, such as `Europe/Berlin`. */
export function zone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** A number with four significant digits: `0.2347`, `1e-5`, `12500`. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-3 || magnitude >= 1e7)) return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(magnitude >= 1e4 ? 6 : 4)));
}

const POWERS = ["", " KiB", " MiB", " GiB", " TiB", " PiB"];

/** An amount of a resource: memory in the largest unit that leaves three digits before the point. */
export function amount(resource: string, value: number | null): string {
  if (value === null) return "";
  if (resource !== "memory") return short(value) || "0";
  let power = 0;
  let left = value;
  while (left >= 1024 && power < POWERS.length - 1) {
    left /= 1024;
    power++;
  }
  return `${Number(left.toPrecision(left >= 1000 ? 4 : 3))}${POWERS[power]}`;
}
