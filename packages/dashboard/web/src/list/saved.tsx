// The menu of views that were saved.

import { useRef, useState } from "preact/hooks";
import { href, onLink } from "../route";
import { useMenu } from "../shell/dialog";
import { Icon } from "../shell/icons";
import { toast } from "../shell/toasts";
import { removeView, saveView, savedViews } from "./views";

/** Views to open, to save the present one at `path`, and to remove. */
export function SavedViews({ path }: { path: string }) {
  const [views, setViews] = useState(savedViews);
  const { menu, close } = useMenu();
  const name = useRef<HTMLInputElement>(null);
  const present = views.find((view) => view.path === path);
  return (
    <details class="menu views-menu" ref={menu}>
      <summary class="button">
        <span>{present ? present.name : "Saved views"}</span>
        <Icon of="down" />
      </summary>
      <div class="panel">
        {views.length === 0 && <p>None yet: filter and sort, and save it under a name.</p>}
        <ul>
          {views.map((view) => (
            <li key={view.name}>
              <a
                href={href(view.path)}
                aria-current={view === present ? "true" : undefined}
                onClick={(event) => {
                  onLink(event);
                  close();
                }}
              >
                {view.name}
              </a>
              <button
                type="button"
                class="icon"
                aria-label={`Remove the view ${view.name}`}
                onClick={() => {
                  setViews(removeView(view.name));
                  name.current!.focus();
                }}
              >
                <Icon of="close" />
              </button>
            </li>
          ))}
        </ul>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const chosen = name.current!.value.trim();
            if (!chosen) return;
            setViews(saveView({ name: chosen, path }));
            name.current!.value = "";
            toast(`Saved the view ${chosen}`);
          }}
        >
          <input ref={name} aria-label="Name of the view" placeholder="Name of this view" maxLength={60} required />
          <button type="submit">Save</button>
        </form>
      </div>
    </details>
  );
}
