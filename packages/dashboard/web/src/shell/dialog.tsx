// What opens over a page and closes again: a dialog, a menu. The focus goes back to where it was, or to the heading.

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** Focus an element, or the heading of the page where that is gone or can have no focus. */
function giveBackFocus(to: Element | null): void {
  if (to === document.body) return;
  if (to instanceof HTMLElement && to.isConnected) to.focus({ preventScroll: true });
  if (document.activeElement !== to) document.querySelector("h1")?.focus({ preventScroll: true });
}

/** Give the focus to the heading when the element that has it goes with this component. */
export function useKeptFocus<T extends HTMLElement>(): RefObject<T | null> {
  const root = useRef<T>(null);
  useLayoutEffect(() => {
    const own = root.current;
    return () => {
      if (own?.contains(document.activeElement)) giveBackFocus(null);
    };
  }, []);
  return root;
}

interface DialogProperties {
  class?: string;
  /** What it is called, unless its heading has this id. */
  label?: string;
  labelledBy?: string;
  /** Whether a click beside it closes it. Default: only its buttons and Escape do. */
  isLight?: boolean;
  /** Called when its user closes it. */
  onClose(): void;
  children: ComponentChildren;
}

/** A dialog that is open as long as it is rendered. */
export function Dialog({ class: name, label, labelledBy, isLight = false, onClose, children }: DialogProperties) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the next key, which is for what is in it.
  useLayoutEffect(() => {
    const shown = dialog.current!;
    const before = document.activeElement;
    shown.showModal();
    return () => {
      shown.close();
      giveBackFocus(before);
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      {...(name ? { class: name } : {})}
      {...(label ? { "aria-label": label } : {})}
      {...(labelledBy ? { "aria-labelledby": labelledBy } : {})}
      onCancel={(event) => {
        // Its own close would be said later than the next key comes.
        event.preventDefault();
        onClose();
      }}
      onClose={(event) => event.currentTarget.isConnected && onClose()}
      onClick={(event) => isLight && event.target === event.currentTarget && onClose()}
    >
      {children}
    </dialog>
  );
}

/** The element of a menu that a summary opens: Escape, a press elsewhere, and focus elsewhere close it. */
export function useMenu(): { menu: RefObject<HTMLDetailsElement | null>; close(): void } {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (!menu.current?.open) return;
    const hasFocus = menu.current.contains(document.activeElement);
    menu.current.open = false;
    if (hasFocus) menu.current.querySelector("summary")?.focus();
  };
  useEffect(() => {
    const leave = ({ target }: Event) => {
      if (menu.current?.open && !menu.current.contains(target as Node)) menu.current.open = false;
    };
    const onKey = ({ key }: KeyboardEvent) => key === "Escape" && close();
    window.addEventListener("pointerdown", leave);
    window.addEventListener("focusin", leave);
    window.addEventListener("keydown", onKey);
    return () => {
      window.removeEventListener("pointerdown", leave);
      window.removeEventListener("focusin", leave);
      window.removeEventListener("keydown", onKey);
    };
  }, []);
  return { menu, close };
}
