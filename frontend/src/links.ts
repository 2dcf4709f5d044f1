// Links into other tabs of the same TensorBoard. Pure.

// Keys of the query that choose what a tab shows. One that is left over from an earlier link would narrow the tab that this link opens.
const VIEW_KEYS = new Set([
  "tagFilter",
  "runFilter",
  "run",
  "tool",
  "tag",
  "host",
  "hosts",
  "module_name",
  "node_name",
  "firstLoad",
  "pinnedCards",
]);

/** `search` of the host with the query of `href` (`?query#hash`) in place of what chose another view; all other keys stay as they are. */
export function merged(search: string, href: string): string {
  const hashAt = href.indexOf("#");
  const query = hashAt < 0 ? href : href.slice(0, hashAt);
  const hash = hashAt < 0 ? "" : href.slice(hashAt);
  const wanted = tokensOf(query);
  const replaced = new Set([...VIEW_KEYS, ...wanted.map(keyOf)]);
  const tokens = [...tokensOf(search).filter((token) => !replaced.has(keyOf(token))), ...wanted];
  return (tokens.length > 0 ? `?${tokens.join("&")}` : "") + hash;
}

function tokensOf(query: string): string[] {
  return query
    .replace(/^\?/, "")
    .split("&")
    .filter((token) => token !== "");
}

function keyOf(token: string): string {
  return token.split("=", 1)[0] ?? "";
}
