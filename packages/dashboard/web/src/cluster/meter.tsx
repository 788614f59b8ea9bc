// A bar of what is requested of something, what of that is used, and what nobody can have.

interface MeterProperties {
  label: string;
  total: number;
  requested: number;
  /** Shown as a mark where it is measured. */
  used?: number | null;
  /** On nodes that take no pods. */
  closed?: number;
  /** What a screen reader says of it. */
  text: string;
}

function percent(value: number, total: number): string {
  return `${Math.min(Math.max(total > 0 ? (value / total) * 100 : 0, 0), 100)}%`;
}

export function Meter({ label, total, requested, used, closed = 0, text }: MeterProperties) {
  const most = Math.max(total, 1e-9);
  return (
    <span
      class={`meter${requested >= total ? " full" : ""}`}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={most}
      aria-valuenow={Math.min(requested, most)}
      aria-valuetext={text}
    >
      <span class="part requested" style={{ width: percent(requested, total) }} />
      {closed > 0 && <span class="part closed" style={{ width: percent(closed, total) }} />}
      {used !== null && used !== undefined && <span class="mark-used" style={{ left: percent(used, total) }} />}
    </span>
  );
}
