// Builds the page into ../src/weft/web/page, or with --tests bundles test/ and runs it.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";
import * as esbuild from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.resolve(here, "../src/weft/web/page");
const common = {
  bundle: true,
  format: "esm",
  target: ["es2023"],
  jsx: "automatic",
  jsxImportSource: "preact",
  absWorkingDir: here,
  logLevel: "warning",
};

if (process.argv.includes("--tests")) {
  const folder = mkdtempSync(path.join(tmpdir(), "weft-page-"));
  const tests = readdirSync(path.join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  await esbuild.build({
    ...common,
    entryPoints: tests.map((name) => path.join(here, "test", name)),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    platform: "node",
  });
  try {
    const files = tests.map((name) => path.join(folder, name.replace(/\.ts$/, ".mjs")));
    execFileSync(process.execPath, ["--test", ...files], { stdio: "inherit" });
  } catch {
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
} else {
  await page();
}

async function page() {
  rmSync(out, { recursive: true, force: true });
  const assets = path.join(out, "assets");
  mkdirSync(assets, { recursive: true });
  const built = await esbuild.build({
    ...common,
    entryPoints: { main: "src/main.tsx", style: "src/css/main.css" },
    outdir: assets,
    entryNames: "[name]-[hash]",
    chunkNames: "part-[hash]",
    splitting: true,
    minify: true,
    legalComments: "none",
    metafile: true,
  });
  const names = Object.keys(built.metafile.outputs).map((name) => path.relative(out, path.resolve(here, name)));
  const script = names.find((name) => /main-.*\.js$/.test(name));
  const style = names.find((name) => /style-.*\.css$/.test(name));
  copyFileSync(path.join(here, "icon.svg"), path.join(out, "icon.svg"));
  // What the first screen loads: the page, its style, its script and what that imports at once.
  const first = new Set(["index.html", style]);
  const add = (name) => {
    if (first.has(name)) return;
    first.add(name);
    const info = built.metafile.outputs[path.relative(here, path.join(out, name)).split(path.sep).join("/")];
    for (const each of info?.imports ?? [])
      if (each.kind === "import-statement") add(path.relative(out, path.resolve(here, each.path)));
  };
  add(script);
  // Named at once: else each part is asked for only when the one that imports it is there.
  const parts = [...first].filter((name) => name.endsWith(".js") && name !== script);
  const preloads = parts.map((name) => `<link rel="modulepreload" href="/${name}">`).join("\n    ");
  const html = readFileSync(path.join(here, "index.html"), "utf8").replace("main.js", script).replace("style.css", style);
  writeFileSync(path.join(out, "index.html"), html.replace("<script", `${preloads}\n    <script`));
  const sizes = new Map();
  const size = (name) => sizes.get(name) ?? pack(name);
  // Beside the plain file, for browsers that take it.
  const pack = (name) => {
    const packed = brotliCompressSync(readFileSync(path.join(out, name)));
    if (name !== "index.html") writeFileSync(path.join(out, `${name}.br`), packed);
    sizes.set(name, packed.length);
    return packed.length;
  };
  const total = [...first].reduce((sum, name) => sum + size(name), 0);
  const late = names.filter((name) => !first.has(name)).map(size);
  const hash = createHash("sha256").update(names.join("\n")).digest("hex").slice(0, 8);
  console.log(`page ${hash}: first load ${(total / 1000).toFixed(1)} KB br, late parts ${late.map((each) => (each / 1000).toFixed(1)).join(", ") || "none"}`);
  if (total > 90_000) {
    console.error("the first load is over 90 KB");
    process.exitCode = 1;
  }
}
