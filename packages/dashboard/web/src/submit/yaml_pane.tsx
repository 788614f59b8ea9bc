// The YAML beside the form, with what is wrong at its lines, and with what differs from the original.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Editor, type LineError, createEditor } from "./editor";

interface YamlPaneProperties {
  /** At first; from then on it is the editor that has it. */
  text: string;
  editor: RefObject<Editor | null>;
  /** What it is compared with; null for nothing. */
  original: string | null;
  errors: readonly LineError[];
  onText(text: string): void;
}

export function YamlPane({ text, editor, original, errors, onText }: YamlPaneProperties) {
  const place = useRef<HTMLDivElement>(null);
  const listener = useRef(onText);
  const [isCompared, setCompared] = useState(false);
  listener.current = onText;
  useEffect(() => {
    const created = (editor.current = createEditor(place.current!, text, "YAML", (next) => listener.current(next)));
    return () => {
      editor.current = null;
      created.destroy();
    };
  }, []);
  useEffect(() => editor.current?.compareWith(isCompared ? original : null), [isCompared, original]);
  useEffect(() => editor.current?.setErrors(errors), [JSON.stringify(errors)]);
  return (
    <section class="compose-yaml" aria-label="YAML">
      <header>
        <h2>YAML</h2>
        {original !== null && (
          <label class="check">
            <input type="checkbox" checked={isCompared} onChange={(event) => setCompared(event.currentTarget.checked)} />
            Show changes
          </label>
        )}
      </header>
      <div class="editor-host" ref={place} />
    </section>
  );
}
