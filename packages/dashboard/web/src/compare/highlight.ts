// How the parts of a comparison show the training that is pointed at.

import type { Highlight } from "../charts/pointer";

/** What has an element of a training tell that it is pointed at, or focused. */
export function pointing({ set }: Highlight, label: string) {
  return {
    onMouseEnter: () => set(label),
    onMouseLeave: () => set(""),
    onFocusIn: () => set(label),
    onFocusOut: () => set(""),
  };
}

/** `raised` for the training that is pointed at, `behind` for the others while one is. */
export function standing({ label }: Highlight, of: string): string {
  return label === "" ? "" : label === of ? "raised" : "behind";
}
