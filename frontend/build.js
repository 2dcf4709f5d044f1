// Bundles src/ into the one ES module that TensorBoard loads: ../tb_advisor/static/index.js.
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build, context, transform } from "esbuild";

const outfile = fileURLToPath(new URL("../tb_advisor/static/index.js", import.meta.url));

// Styles travel inside the module, so that the tab is one file and needs no second request.
const stylesAsText = {
  name: "styles-as-text",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code, loader: "text" };
    });
  },
};

const options = {
  entryPoints: [fileURLToPath(new URL("src/index.tsx", import.meta.url))],
  outfile,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [stylesAsText],
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
