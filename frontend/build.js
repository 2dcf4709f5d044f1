// Bundles src/ into the one ES module that TensorBoard loads: ../tb_advisor/static/index.js.
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build, context } from "esbuild";

const outfile = fileURLToPath(new URL("../tb_advisor/static/index.js", import.meta.url));

const options = {
  entryPoints: [fileURLToPath(new URL("src/index.tsx", import.meta.url))],
  outfile,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  // Styles travel inside the module, so that the tab is one file and needs no second request.
  loader: { ".css": "text" },
  legalComments: "inline",
  logLevel: "info",
};

if (process.argv.includes("--watch")) {
  const watcher = await context({ ...options, minify: false });
  await watcher.watch();
} else {
  await build(options);
  console.log(`${outfile}: ${Math.round(statSync(outfile).size / 1024)} KiB`);
}
