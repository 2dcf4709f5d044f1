import { describe, expect, it } from "vitest";
import { merged } from "../src/links";

const SERIES = "?tagFilter=%5Eloss%24&runFilter=%5Ea%2Fb%24#timeseries";

describe("a link into another tab", () => {
  it("brings its own query", () => expect(merged("", SERIES)).toBe(SERIES));

  it("keeps what is not its own: theme, proxies' tokens, other plugins", () =>
    expect(merged("?darkMode=true&token=a%2Bb", SERIES)).toBe(`?darkMode=true&token=a%2Bb&${SERIES.slice(1)}`));

  it("replaces an earlier filter", () => expect(merged("?tagFilter=acc&runFilter=x", SERIES)).toBe(SERIES));

  it("drops what an earlier link chose, where this one does not", () =>
    expect(merged("?tagFilter=acc&darkMode=false&run=a&tool=trace_viewer&host=h", "#histograms&tagFilter=w")).toBe(
      "?darkMode=false#histograms&tagFilter=w",
    ));

  it("adds no question mark where there is no query: TensorBoard would load again", () =>
    expect(merged("", "#histograms&tagFilter=w")).toBe("#histograms&tagFilter=w"));
});
