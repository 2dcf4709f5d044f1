import type { ComponentChildren } from "preact";

/** Text with names in `backticks`, as the report and the rules write it. */
export function Inline({ text }: { readonly text: string }) {
  const parts = text.split(/``?([^`]+)``?/);
  return <>{parts.map((part, i): ComponentChildren => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>;
}

/** Paragraphs and lists of a rule's documentation. */
export function Prose({ text }: { readonly text: string }) {
  const blocks = text.trim().split(/\n\s*\n/);
  return (
    <div class="prose">
      {blocks.map((block, i) =>
        /^\s*[-*] /.test(block) ? (
          <ul key={i}>
            {block
              .split(/^\s*[-*] /m)
              .filter(Boolean)
              .map((item, j) => (
                <li key={j}>
                  <Inline text={item} />
                </li>
              ))}
          </ul>
        ) : (
          <p key={i}>
            <Inline text={block} />
          </p>
        ),
      )}
    </div>
  );
}
