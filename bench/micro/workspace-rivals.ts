// What else keeps the files of a folder with each turn, for workspaces.ts.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Saves and restores a folder as a whole. */
export interface Rival {
  /** Its folder, which is a copy of the tree. */
  readonly root: string;
  save(): Promise<string>;
  restore(saved: string): Promise<void>;
  /** The bytes of all that it has saved. */
  size(): number;
}

/** A repository beside the folder, without the settings and hooks of the user. */
export function shadowGit(base: string, root: string): Rival {
  const repository = join(base, 'shadow.git');
  const env = { ...process.env, GIT_DIR: repository, GIT_WORK_TREE: root };
  const settings = ['user.name=a', 'user.email=a@b', 'gc.auto=0', 'core.excludesFile=/dev/null'];
  const config = settings.flatMap((each) => ['-c', each]);
  const git = (...args: readonly string[]): string =>
    execFileSync('git', [...config, ...args], {
      cwd: root,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  git('init', '-q');
  writeFileSync(join(repository, 'info/exclude'), '.waymark\n');
  return {
    root,
    async save() {
      git('add', '-A');
      // It answers with "[main 1234567] turn".
      const [, id = ''] =
        / ([0-9a-f]+)\] /.exec(git('commit', '-m', 'turn', '--allow-empty')) ?? [];
      return id;
    },
    async restore(saved) {
      git('read-tree', '--reset', '-u', saved);
    },
    size: () => bytesIn(repository),
  };
}

/** Sandboxes of the OpenAI Agents SDK, whose sessions save their folder as an archive. `undefined` if it is not installed. */
export async function openAiSandbox(base: string, from: string): Promise<Rival | undefined> {
  // Installed in `bench`, or where NODE_PATH says.
  const load = (entry: string) => import(`@openai/agents/${entry}`).catch(() => undefined);
  const sdk = await load('sandbox/local');
  if (sdk === undefined) return undefined;
  const folder = join(base, 'sandboxes');
  const saved = join(base, 'archives');
  mkdirSync(folder);
  mkdirSync(saved);
  const { Manifest } = await load('sandbox');
  const client = new sdk.UnixLocalSandboxClient({ workspaceBaseDir: folder, archiveLimits: null });
  const session = await client.create(new Manifest({}));
  const root = session.state.workspaceRootPath;
  for (const name of readdirSync(from)) {
    if (name === '.waymark') continue;
    cpSync(join(from, name), join(root, name), { recursive: true, verbatimSymlinks: true });
  }
  let count = 0;
  return {
    root,
    async save() {
      const path = join(saved, `${count++}.tar`);
      await writeFile(path, await session.persistWorkspace());
      return path;
    },
    restore: async (path: string) => await session.hydrateWorkspace(await readFile(path)),
    size: () => bytesIn(saved),
  };
}

export function bytesIn(path: string): number {
  if (!existsSync(path)) return 0;
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names.reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
}
