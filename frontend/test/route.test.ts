import { describe, expect, it } from "vitest";
import { COVERAGE, formatRoute, isSamePage, jobRoute, NONE, OVERVIEW, parseRoute } from "../src/route";

describe("the tab's own address", () => {
  it.each([
    ["#advisor", OVERVIEW],
    ["#advisor&p.advisor.view=coverage", COVERAGE],
    ["#advisor&p.advisor.job=exp1", jobRoute("exp1")],
    ["#advisor&p.advisor.job=exp%2Fa%3Db%26c&p.advisor.diagnosis=overfitting", jobRoute("exp/a=b&c", "overfitting")],
  ])("%s is read and written", (hash, route) => {
    expect(parseRoute(hash)).toEqual(route);
    expect(formatRoute(route)).toBe(hash);
  });

  it("is one page whatever is open on it", () => {
    expect(isSamePage(jobRoute("a"), jobRoute("a", NONE))).toBe(true);
    expect(isSamePage(jobRoute("a"), jobRoute("b"))).toBe(false);
    expect(isSamePage(COVERAGE, OVERVIEW)).toBe(false);
  });

  it("leaves other tabs' addresses alone", () => expect(parseRoute("#timeseries&p.advisor.job=a")).toBeNull());

  it("ignores keys of others", () => expect(parseRoute("#advisor&tagFilter=loss&p.advisor.job=a")).toEqual(jobRoute("a")));

  it("takes a damaged encoding as it stands", () => expect(parseRoute("#advisor&p.advisor.job=100%")).toEqual(jobRoute("100%")));

  it("has one equals sign in every token, whatever the name", () => {
    for (const token of formatRoute(jobRoute("a=b=c", "x=y")).split("&").slice(1)) expect(token.split("=")).toHaveLength(2);
  });
});
