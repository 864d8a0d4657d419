import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface LockedPackage {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/** What npm has installed in a folder, as its hidden lock file says. */
export interface Installed {
  readonly root: string;
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

export function readInstalled(root: string): Installed {
  const lock = readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8');
  const { packages } = JSON.parse(lock) as Pick<Installed, 'packages'>;
  return { root, packages };
}

/** The folders of these packages and of all that they bring: what `npm install` of them alone would put there. */
export function closureOf(installed: Installed, names: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const visit = (from: string, name: string): void => {
    const path = resolve(installed, from, name);
    // An optional one that does not fit this machine is not there.
    if (path === undefined || found.has(path)) return;
    found.add(path);
    for (const needed of neededBy(installed.packages[path] ?? {})) visit(path, needed);
  };
  for (const name of names) visit('', name);
  return [...found].map((path) => join(installed.root, path));
}

function neededBy(locked: LockedPackage): readonly string[] {
  const { dependencies, optionalDependencies, peerDependencies = {} } = locked;
  const peers = Object.keys(peerDependencies).filter(
    (name) => locked.peerDependenciesMeta?.[name]?.optional !== true,
  );
  return [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers];
}

// As Node looks for it: in the folder's own node_modules, then in those above.
function resolve({ packages }: Installed, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = parentOf(folder)) {
    const path = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (folder === '') return undefined;
  }
}

function parentOf(folder: string): string {
  const at = folder.lastIndexOf('/node_modules/');
  return at === -1 ? '' : folder.slice(0, at);
}
