import { useContext } from "preact/hooks";
import { count, integer } from "../format";
import { useKeys } from "../keys";
import { gapsOf, type Report, type RoleUse, rolesOf, tallyOf } from "../report";
import { OVERVIEW, type Route } from "../route";
import { Session } from "../session";
import { Glyph } from "./Glyph";
import { RouteLink } from "./RouteLink";

/** What was checked, what was not and why, and what every tag was taken for. */
export function Coverage({ report, go }: { readonly report: Report; readonly go: (route: Route) => void }) {
  useKeys({ Escape: () => go(OVERVIEW) });
  const tally = tallyOf(report.outcomes);
  const gaps = gapsOf(report.outcomes);
  const failed = report.outcomes.filter((outcome) => outcome.status === "error");
  const jobs = report.jobs.length;
  return (
    <main>
      <div class="toolbar">
        <RouteLink route={OVERVIEW} class="button">
          All jobs
        </RouteLink>
        <h1 class="toolbar-title">What was checked</h1>
      </div>
      <div class="page">
        <dl class="tally">
          {(
            [
              ["found", tally.found],
              ["clear", tally.clear],
              ["not checked", tally.notChecked],
              ["failed", tally.failed],
            ] as const
          ).map(([word, n]) => (
            <div key={word}>
              <dt>{word}</dt>
              <dd>{integer(n)}</dd>
            </div>
          ))}
        </dl>
        <p class="tally-note">One check is one rule on one job.</p>
        <div class="columns coverage">
          <div>
            {gaps.length > 0 && (
              <table class="checks-table">
                <caption>Not checked, by what is missing</caption>
                <thead>
                  <tr>
                    <th scope="col">Missing in the logs, and the rules that need it</th>
                    <th scope="col" class="right">
                      Checks
                    </th>
                    <th scope="col" class="right">
                      Jobs
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {gaps.map((gap) => (
                    <tr key={gap.reason}>
                      <td>
                        <Glyph kind="none" />
                        <b>{gap.reason}</b>
                        <span class="sub">{gap.rules.join(", ")}</span>
                      </td>
                      <td class="right">{integer(gap.checks)}</td>
                      <td class="right soft">
                        {integer(gap.jobs)} of {integer(jobs)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            {failed.length > 0 && (
              <table class="checks-table">
                <caption>Failed</caption>
                <tbody>
                  {failed.map((outcome) => (
                    <tr key={`${outcome.rule} ${outcome.job}`}>
                      <td>
                        <Glyph kind="error" named />
                        <b>
                          {outcome.rule} on {outcome.job}
                        </b>
                        <span class="sub">{outcome.reason} Other checks are not affected.</span>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            <ClearRules report={report} />
          </div>
          <aside aria-label="Roles of the tags">
            <Roles uses={rolesOf(report.jobs)} />
          </aside>
        </div>
      </div>
    </main>
  );
}

function ClearRules({ report }: { readonly report: Report }) {
  const { rules } = useContext(Session);
  const clear = report.rules
    .map((rule) => ({ rule, jobs: report.outcomes.filter((outcome) => outcome.rule === rule && outcome.status === "clear").length }))
    .filter(({ jobs }) => jobs > 0);
  if (clear.length === 0) return null;
  return (
    <table class="checks-table">
      <caption>Clear</caption>
      <thead>
        <tr>
          <th scope="col">Rule, and what it would have found</th>
          <th scope="col" class="right">
            Jobs
          </th>
        </tr>
      </thead>
      <tbody>
        {clear.map(({ rule, jobs }) => (
          <tr key={rule}>
            <td>
              <Glyph kind="clear" />
              <b>{rule}</b>
              <span class="sub">{rules.get(rule)?.title}</span>
            </td>
            <td class="right soft">
              {integer(jobs)} of {integer(report.jobs.length)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const MOST_TAGS = 5;

function Roles({ uses }: { readonly uses: readonly RoleUse[] }) {
  const roles = [...new Set(uses.map((use) => use.role))];
  return (
    <>
      <table class="roles">
        <caption>Roles of the tags</caption>
        <thead class="visually-hidden">
          <tr>
            <th scope="col">Role</th>
            <th scope="col">Tag</th>
            <th scope="col">Jobs</th>
          </tr>
        </thead>
        {roles.map((role) => {
          const its = uses.filter((use) => use.role === role);
          return (
            <tbody key={role}>
              {its.slice(0, MOST_TAGS).map((use, i) => (
                <tr key={use.tag}>
                  {i === 0 && (
                    <th scope="rowgroup" rowSpan={Math.min(its.length, MOST_TAGS)}>
                      {role.replaceAll("_", " ")}
                    </th>
                  )}
                  <td>
                    {use.tag}
                    {i === MOST_TAGS - 1 && its.length > MOST_TAGS && ` and ${count(its.length - MOST_TAGS, "more tag")}`}
                  </td>
                  <td class="right soft">{integer(use.jobs)}</td>
                </tr>
              ))}
            </tbody>
          );
        })}
      </table>
      {roles.length === 0 && <p class="note">No tag plays a role that a rule knows.</p>}
    </>
  );
}
