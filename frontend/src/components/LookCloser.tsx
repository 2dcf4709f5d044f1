import { useContext } from "preact/hooks";
import { linkAddress, openInPlace } from "../host";
import type { Link } from "../report";
import { Session } from "../session";
import { isPlain } from "./RouteLink";

/** Links to the exact chart in the other tabs. */
export function LookCloser({ links }: { readonly links: readonly Link[] }) {
  const { hasProfileTab } = useContext(Session);
  if (links.length === 0) return null;
  const open = links.filter((link) => link.tab !== "profile" || hasProfileTab);
  return (
    <>
      <h3>Look closer</h3>
      <ul class="links">
        {open.map((link) => (
          <li key={link.href}>
            <a
              href={linkAddress(link.href)}
              target="_parent"
              onClick={(event) => {
                // The host's query may have changed since this was drawn.
                event.currentTarget.href = linkAddress(link.href);
                if (isPlain(event) && openInPlace(link.href, link.tab)) event.preventDefault();
              }}
            >
              {link.label}
            </a>
          </li>
        ))}
      </ul>
      {open.length < links.length && (
        <p class="note">
          Install xprof to open this capture in the Profile tab: <code>pip install xprof</code>
        </p>
      )}
    </>
  );
}
