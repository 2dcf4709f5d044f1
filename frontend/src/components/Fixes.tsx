import { useState } from "preact/hooks";
import { number } from "../format";
import type { Fix } from "../report";
import { CodeBox } from "./Copy";
import { Inline } from "./Prose";
import { writerName } from "./writers";

/** What to try, cheapest first, the first with its code open. */
export function Fixes({ fixes }: { readonly fixes: readonly Fix[] }) {
  if (fixes.length === 0) return <div />;
  return (
    <section aria-label="What to try">
      <h3>What to try</h3>
      <ol class="fixes">
        {fixes.map((fix, i) => (
          <li key={fix.id} class="fix">
            <span class="ordinal" aria-hidden="true">
              {i + 1}
            </span>
            <div>
              <h4>
                {fix.title}
                {fix.cost && <span class="cost"> {fix.cost}</span>}
              </h4>
              <p>
                <Inline text={fix.why} />
              </p>
              <FixCode fix={fix} isFirst={i === 0} />
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}

function FixCode({ fix, isFirst }: { readonly fix: Fix; readonly isFirst: boolean }) {
  const frameworks = Object.keys(fix.code);
  const [open, setOpen] = useState(isFirst);
  const [chosen, setChosen] = useState(frameworks[0] ?? "");
  const code = fix.code[chosen];
  const more = fix.url && (
    <a class="more" href={fix.url} target="_blank" rel="noopener noreferrer">
      Documentation <span aria-hidden="true">↗</span>
    </a>
  );
  if (code === undefined) return <p>{more}</p>;
  if (!open) {
    return (
      <button type="button" class="text-button" onClick={() => setOpen(true)}>
        Show code for {writerName(chosen)}
      </button>
    );
  }
  return (
    <>
      <CodeBox
        code={code}
        head={
          frameworks.length === 1 ? (
            <span>{writerName(chosen)}</span>
          ) : (
            <span class="frameworks" role="group" aria-label="Framework">
              {frameworks.map((framework) => (
                <button key={framework} type="button" aria-pressed={framework === chosen} onClick={() => setChosen(framework)}>
                  {writerName(framework)}
                </button>
              ))}
            </span>
          )
        }
      />
      {more}
      {(fix.from_run?.length ?? 0) > 0 && (
        <p class="note">From this run: {fix.from_run?.map(({ value, text }) => `${number(value)} is ${text}`).join("; ")}.</p>
      )}
    </>
  );
}
