// Bundles the page into the Python package. Names carry a digest of the content, so browsers may keep them forever.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "evidex", "server", "static");

await rm(out, { recursive: true, force: true });
await mkdir(join(out, "assets"), { recursive: true });
const result = await build({
  absWorkingDir: here,
  entryPoints: { main: "src/main.ts", style: "src/style.css", theme: "src/theme_first.ts" },
  outdir: join(out, "assets"),
  entryNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  loader: { ".woff2": "file", ".png": "dataurl", ".svg": "file" },
  legalComments: "eof",
  metafile: true,
});
const names = Object.keys(result.metafile.outputs).map((path) => basename(path));
const named = (start, end) => `assets/${names.find((name) => name.startsWith(start) && name.endsWith(end))}`;
const icon = await readFile(join(here, "src", "icon.svg"), "utf8");
let page = await readFile(join(here, "src", "index.html"), "utf8");
page = page
  .replace("{{style}}", named("style-", ".css"))
  .replace("{{theme}}", named("theme-", ".js"))
  .replace("{{script}}", named("main-", ".js"))
  .replace("{{icon}}", `data:image/svg+xml,${encodeURIComponent(icon)}`);
await writeFile(join(out, "index.html"), page);
let total = 0;
for (const [path, { bytes }] of Object.entries(result.metafile.outputs)) {
  total += bytes;
  console.log(`${(bytes / 1024).toFixed(0).padStart(6)} kB  ${basename(path)}`);
}
console.log(`${(total / 1024).toFixed(0).padStart(6)} kB  in all, in ${out}`);
