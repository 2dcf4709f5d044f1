import { useContext } from "preact/hooks";
import { Session } from "../session";
import { Chevron } from "./Glyph";
import { Prose } from "./Prose";

const SECTIONS = [
  ["How it is found", "How this was found"],
  ["Why it matters", "Why it matters"],
  ["When it is wrong", "When it is wrong"],
] as const;

/** What the rule's own documentation says, folded. */
export function About({ rule }: { readonly rule: string }) {
  const { rules } = useContext(Session);
  const documentation = rules.get(rule)?.documentation;
  if (!documentation) return null;
  return (
    <>
      <h3>About this check</h3>
      {SECTIONS.map(([section, title]) => {
        const text = documentation[section];
        if (!text) return null;
        return (
          <details key={section}>
            <summary>
              <Chevron />
              {title}
            </summary>
            <Prose text={text} />
          </details>
        );
      })}
    </>
  );
}
