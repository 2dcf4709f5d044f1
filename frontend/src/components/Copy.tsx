import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Copies `text`, and says so for two seconds. */
export function CopyButton({ text, children = "Copy" }: { readonly text: string; readonly children?: ComponentChildren }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <>
      <button type="button" class="button small copy" onClick={() => void copy(text).then(setCopied)}>
        {copied ? "Copied" : children}
      </button>
      <span class="visually-hidden" aria-live="polite">
        {copied ? "Copied" : ""}
      </span>
    </>
  );
}

/** The clipboard is there on secure origins only; TensorBoard is often reached over plain HTTP from another machine. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/** A snippet in its box, under a title (or the `head` that chooses what is shown). */
export function CodeBox({ head, code }: { readonly head: ComponentChildren; readonly code: string }) {
  return (
    <div class="code-box">
      <div class="code-head">
        {head}
        <span class="grow" />
        <CopyButton text={code.trimEnd()} />
      </div>
      <Pre code={code} />
    </div>
  );
}

/** A snippet of one line. */
export function CodeLine({ code }: { readonly code: string }) {
  return (
    <div class="code-line">
      <Pre code={code} />
      <CopyButton text={code} />
    </div>
  );
}

/** Code scrolls in its own box, so that the keyboard must be able to reach it. */
function Pre({ code }: { readonly code: string }) {
  return (
    <pre tabIndex={0}>
      {code
        .trimEnd()
        .split("\n")
        .map((line, i) => (
          <span key={i}>
            {highlighted(line)}
            {"\n"}
          </span>
        ))}
    </pre>
  );
}

const TOKENS = /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|#.*$|\b(?:True|False|None)\b|\b\d[\d_.]*(?:e-?\d+)?\b)/;

/** Strings, numbers and constants in the accent, comments in grey: enough to find what to change. */
function highlighted(line: string): ComponentChildren[] {
  return line.split(TOKENS).map((part, i) => {
    if (i % 2 === 0) return part;
    return part.startsWith("#") ? <i key={i}>{part}</i> : <em key={i}>{part}</em>;
  });
}
