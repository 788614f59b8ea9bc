// What is the same in all trainings, folded: it explains nothing, and is needed now and then.

import type { Field } from "./fields";

interface SameProperties {
  fields: readonly Field[];
  /** Trainings that it is known of. */
  count: number;
}

export function SameInAll({ fields, count }: SameProperties) {
  if (fields.length === 0) return null;
  const title = count > 1 ? `${fields.length} ${fields.length === 1 ? "value is" : "values are"} the same in all` : "Parameters and settings";
  return (
    <details class="fold same">
      <summary>{title}</summary>
      <dl class="parameters" aria-label={title} tabIndex={0}>
        {fields.map(({ key, title, values }) => (
          <div key={key}>
            <dt>{title}</dt>
            <dd>{values.find((value) => value !== null)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
