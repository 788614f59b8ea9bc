// One legend for all charts: it names the colours, points out a training, and takes one out of the charts.

import { TONES } from "../charts/curves";
import type { Highlight } from "../charts/pointer";
import { pointing, standing } from "./highlight";
import type { Training } from "./training";

interface LegendProperties {
  trainings: readonly Training[];
  off: readonly string[];
  highlight: Highlight;
  hasEvaluation: boolean;
  onToggle(id: string): void;
}

export function Legend({ trainings, off, highlight, hasEvaluation, onToggle }: LegendProperties) {
  return (
    <div class="one-legend">
      <ul aria-label="Trainings in the charts">
        {trainings.map(({ id, label, tone }) => (
          <li key={id}>
            <button
              type="button"
              class={`tone-${tone} ${standing(highlight, label)}`}
              aria-pressed={!off.includes(id)}
              title={off.includes(id) ? `Show ${label} in the charts` : `Hide ${label} in the charts`}
              onClick={() => onToggle(id)}
              {...pointing(highlight, label)}
            >
              <span class="swatch" aria-hidden="true" />
              <span class="label">{label}</span>
            </button>
          </li>
        ))}
      </ul>
      <p class="quiet">
        {hasEvaluation && (
          <span class="dashes">
            <span class="swatch eval" aria-hidden="true" /> evaluation
          </span>
        )}
        {trainings.length > TONES && <span>Colours repeat after {TONES} trainings: point at one to see which it is.</span>}
      </p>
    </div>
  );
}
