// A line of a log as it is shown.

import { Component } from "preact";
import { marked } from "./ansi";
import type { Line } from "./log_lines";

interface LogLineProperties {
  line: Line;
  /** Whose line it is; "" where that goes without saying. */
  label: string;
  hasTime: boolean;
  /** The text whose places are marked, in lower case; "" for none. */
  wanted: string;
  /** Whether it is the match that was walked to. */
  isCurrent: boolean;
}

/** Rendered once: a line never changes, and a log may get hundreds in a second while a thousand are shown. */
export class LogLine extends Component<LogLineProperties> {
  override shouldComponentUpdate({ line, label, hasTime, wanted, isCurrent }: LogLineProperties): boolean {
    const shown = this.props;
    return line !== shown.line || label !== shown.label || hasTime !== shown.hasTime || wanted !== shown.wanted || isCurrent !== shown.isCurrent;
  }

  override render({ line, label, hasTime, wanted, isCurrent }: LogLineProperties) {
    return (
      <div class={`line ${line.level}${isCurrent ? " current" : ""}`} data-line={line.id}>
        {hasTime && <time dateTime={line.stamp}>{clockTime(line.stamp)}</time>}
        {label && <span class={`source source-${line.source % 6}`}>{label}</span>}
        <span class="text" title={line.stamp}>
          <Text of={line} wanted={wanted} />
        </span>
      </div>
    );
  }
}

function Text({ of, wanted }: { of: Line; wanted: string }) {
  if (!wanted && of.pieces.length < 2 && of.pieces.every(({ color, isBold, isFaint }) => color === null && !isBold && !isFaint)) return <>{of.text}</>;
  return (
    <>
      {marked(of.pieces, wanted).map(({ text, isMatch, ...style }, index) =>
        isMatch ? (
          <mark key={index}>{text}</mark>
        ) : (
          <span key={index} class={classOf(style)}>
            {text}
          </span>
        ),
      )}
    </>
  );
}

function classOf({ color, isBold, isFaint }: { color: number | null; isBold: boolean; isFaint: boolean }): string {
  return [color === null ? "" : `ansi-${color}`, isBold ? "ansi-bold" : "", isFaint ? "ansi-faint" : ""].filter(Boolean).join(" ");
}

/** The time of day of the reader's zone. */
function clockTime(stamp: string): string {
  const time = new Date(stamp);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString(undefined, { hour12: false });
}
