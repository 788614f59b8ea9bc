// Buttons that copy a text, and commands with such a button.

import { useState } from "preact/hooks";
import { Icon } from "./icons";
import { toast } from "./toasts";

const SHOWN = 1500;

/** Copy a text, and say so; false where the browser refuses. */
export async function copy(text: string, what: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}`);
    return true;
  } catch {
    toast(`The browser does not let this page copy ${what}: select and copy it by hand`, "bad");
    return false;
  }
}

/** A button that copies a text; `what` names it, such as "the command". */
export function Copy({ text, what }: { text: string; what: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <button
      type="button"
      class="icon"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() =>
        void copy(text, what).then((done) => {
          setCopied(done);
          setTimeout(() => setCopied(false), SHOWN);
        })
      }
    >
      <Icon of={isCopied ? "check" : "copy"} />
    </button>
  );
}

/** A command of a terminal, to copy. */
export function Command({ children }: { children: string }) {
  return (
    <span class="shell-command">
      <code>{children}</code>
      <Copy text={children} what="the command" />
    </span>
  );
}
