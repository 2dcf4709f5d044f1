import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { addressOf } from "../host";
import type { Route } from "../route";
import { Session } from "../session";

interface Props {
  readonly route: Route;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** A link within the tab: a plain click switches the view, every other one (new window, copy) has the full address. */
export function RouteLink({ route, class: name, children }: Props) {
  const { go } = useContext(Session);
  return (
    <a
      class={name}
      href={addressOf(route)}
      target="_parent"
      onClick={(event) => {
        if (!isPlain(event)) return;
        event.preventDefault();
        go(route);
      }}
    >
      {children}
    </a>
  );
}

/** Whether a click asks for nothing but to follow the link here. */
export function isPlain(event: MouseEvent): boolean {
  return event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
}
