// Buttons that zoom a chart, for whoever has no mouse.

import type { Zoom } from "./zoom";

const BUTTONS: [zoom: Zoom, sign: string, does: string][] = [
  ["in", "+", "Zoom in on"],
  ["out", "−", "Zoom out of"],
  ["left", "←", "Show what is before in"],
  ["right", "→", "Show what is next in"],
  ["all", "all", "Show all of"],
];

export function ZoomBar({ name, onZoom }: { name: string; onZoom(zoom: Zoom): void }) {
  return (
    <div class="zoom" role="group" aria-label={`Zoom of ${name}`}>
      {BUTTONS.map(([zoom, sign, does]) => (
        <button key={zoom} type="button" aria-label={`${does} ${name}`} title={`${does} ${name}`} onClick={() => onZoom(zoom)}>
          {sign}
        </button>
      ))}
    </div>
  );
}

/** How charts are zoomed. */
export function ZoomHelp() {
  return (
    <p class="quiet">
      Drag in a chart to zoom, or use its buttons. With the keyboard: focus a chart, then <kbd>+</kbd> and <kbd>−</kbd> zoom,
      arrow keys move, and <kbd>0</kbd> shows all.
    </p>
  );
}
