// Builds the package `headgate`: writes the sources of the executable to server/dist as plain JavaScript, and copies
// the other files that they refer to. This is needed because Node does not strip types from files below node_modules.
//
// The tree below dist is the same as in the repository, so relative paths stay valid. Only the extensions of modules
// change, and imports of a workspace by its package name become paths.

import {
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { isBuiltin, stripTypeScriptTypes } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const server = join(root, 'server');
const dist = join(server, 'dist');
const entry = join(server, 'cli', 'headgate.ts');

/** The workspaces that are included in the package, with their folders. */
const workspaces: Readonly<Record<string, string>> = {
  '@headgate/catalogue/': join(root, 'catalogue'),
  '@headgate/client/': join(root, 'client'),
};

const { dependencies } = JSON.parse(readFileSync(join(server, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
};

/** Matches the name of a module in an `import` or `export … from` at the start of a line, or in a dynamic import. */
const importedName = /(^(?:(?:import|export)\b[^'"();]*?\bfrom|import)\s*|\bimport\(\s*)(['"])([^'"\n]+)\2/gm;
/** Matches the relative path by which a module refers to a file. A template literal may stand for several files. */
const namedFile = /(new URL\(\s*)(['"`])([^'"`\n]+)\2(?=\s*,\s*import\.meta\.url\b)/g;
/** Matches a reference that is computed at run time. It may name any file in the folder of the module. */
const workedOutFile = /new URL\(\s*[\w$.]+(?=\s*,\s*import\.meta\.url\b)/;
/** Matches other ways to refer to files relative to a module. The build fails if a module uses one of them. */
const otherPlaces = /\bimport\.meta\.(?:dirname|filename|resolve)\b/;

class BuildProblem extends Error {}

function build(): { readonly modules: number; readonly assets: number } {
  rmSync(dist, { recursive: true, force: true });
  const modules = new Set([entry]);
  const assets = new Set<string>();
  // The loop also visits the modules that are added to the set while it runs.
  for (const module of modules) {
    for (const file of buildModule(module)) (file.endsWith('.ts') ? modules : assets).add(file);
  }
  for (const asset of assets) cpSync(asset, distPathOf(asset), { recursive: true });
  copyFileSync(join(root, 'LICENSE'), join(server, 'LICENSE'));
  return { modules: modules.size, assets: assets.size };
}

/** Writes the module as JavaScript. Returns the files of this repository that the module refers to. */
function buildModule(module: string): readonly string[] {
  const shown = relative(root, module);
  const code = stripTypeScriptTypes(readFileSync(module, 'utf8'));
  const place = otherPlaces.exec(code)?.[0];
  if (place !== undefined) throw new BuildProblem(`${shown} uses ${place}; use new URL(…, import.meta.url)`);
  const found: string[] = workedOutFile.test(code) ? assetsBeside(module) : [];
  const built = code
    .replace(importedName, (whole, keyword: string, quote: string, name: string) => {
      const target = importTarget(shown, module, name);
      if (target === null) return whole;
      found.push(target);
      return `${keyword}${quote}${asJavaScript(pathFrom(module, target))}${quote}`;
    })
    .replace(namedFile, (_, opening: string, quote: string, name: string) => {
      found.push(...filesNamed(shown, module, name));
      return `${opening}${quote}${asJavaScript(name)}${quote}`;
    });
  const target = distPathOf(asJavaScript(module));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, built);
  return found;
}

/** Returns the imported file of this repository, or null if the import is a module of Node or of a dependency. */
function importTarget(shown: string, module: string, name: string): string | null {
  if (name.startsWith('.')) return resolve(dirname(module), name);
  const workspace = Object.keys(workspaces).find((prefix) => name.startsWith(prefix));
  if (workspace !== undefined) return join(workspaces[workspace]!, name.slice(workspace.length));
  if (isBuiltin(name)) return null;
  const dependency = name.split('/', name.startsWith('@') ? 2 : 1).join('/');
  if (Object.hasOwn(dependencies, dependency)) return null;
  throw new BuildProblem(`${shown} imports ${name}, which is not a dependency of the package headgate`);
}

function filesNamed(shown: string, module: string, name: string): readonly string[] {
  const pattern = name.replace(/\$\{[^}]*\}/g, '*');
  const files = globSync(pattern, { cwd: dirname(module) }).map((path) => resolve(dirname(module), path));
  if (files.length > 0) return files;
  throw new BuildProblem(`${shown} refers to ${name}, which does not exist`);
}

function assetsBeside(module: string): string[] {
  return readdirSync(dirname(module), { withFileTypes: true })
    .filter((item) => item.isFile() && !item.name.endsWith('.ts'))
    .map(({ name }) => join(dirname(module), name));
}

function pathFrom(module: string, target: string): string {
  const path = relative(dirname(module), target);
  return path.startsWith('.') ? path : `./${path}`;
}

function asJavaScript(path: string): string {
  return path.replace(/\.ts$/, '.js');
}

function distPathOf(file: string): string {
  return join(dist, relative(root, file));
}

try {
  const { modules, assets } = build();
  // Printed to standard error, because npm prints the name of the package to standard output.
  console.error(
    `built ${modules} modules and ${assets} other files into ${relative(process.cwd(), dist) || '.'}`,
  );
} catch (error) {
  if (!(error instanceof BuildProblem)) throw error;
  console.error(`cannot build: ${error.message}`);
  process.exitCode = 1;
}
