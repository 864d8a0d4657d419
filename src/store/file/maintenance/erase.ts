import { isWaymarkError } from '../../../core/error.ts';
import { betweenSteps } from '../../rules/between-steps.ts';
import { ownerFolder, trashFolder } from '../directory/layout.ts';
import { emptyTrash } from '../directory/trash.ts';
import { batch, dropFamilies, dropRunFiles } from './drop.ts';
import { type MaintenanceContext, readToEnd } from './family-copy.ts';
import { familiesIn, scopesOf } from './folders.ts';
import { type SeenFamily, SessionList, seeFamily } from './seen-family.ts';

/** Removes the sessions of an owner, a few at a time, then everything else of it. Resolves to the number of sessions. */
export async function eraseOwner(context: MaintenanceContext, owner: string): Promise<number> {
  const { cache, transaction } = context;
  await transaction.open();
  let erased = 0;
  try {
    for (;;) {
      const { sessions, unreadable } = await eraseSessions(context, ownerFolder(owner));
      erased += sessions;
      if (
        await transaction.write(
          () => eraseRest(context, owner, unreadable),
          () => {},
        )
      )
        break;
    }
    await dropRunFiles(context, (scope) => scope.owner === owner);
    await transaction.write(
      () => cache.tables.spend.eraseOwner(owner),
      () => cache.spend.save(),
    );
  } finally {
    await emptyTrash(cache.disk, (work) => transaction.write(work, () => {}));
  }
  return erased;
}

interface Erased {
  readonly sessions: number;
  /** Folders whose journals cannot be read. */
  readonly unreadable: ReadonlySet<string>;
}

async function eraseSessions(context: MaintenanceContext, root: string): Promise<Erased> {
  const { cache, transaction, step } = context;
  const unreadable = new Set<string>();
  let sessions = 0;
  let families: SeenFamily[] = [];
  const drop = async (): Promise<void> => {
    const some = families;
    families = [];
    const gone = await transaction.write(
      () => dropFamilies(cache, some),
      () => {},
    );
    const count = gone.reduce((sum, family) => sum + family.sessions.length, 0);
    sessions += count;
    step(count);
    await betweenSteps();
  };
  for await (const folder of familiesIn(cache.disk, scopesOf(cache.disk, root))) {
    const family = await see(context, folder);
    if (family === undefined) unreadable.add(folder);
    else families.push(family);
    if (families.length >= batch) await drop();
  }
  if (families.length > 0) await drop();
  return { sessions, unreadable };
}

async function see(context: MaintenanceContext, folder: string): Promise<SeenFamily | undefined> {
  const { disk } = context.cache;
  const list = new SessionList(disk, folder);
  try {
    const family = await readToEnd(context, list, () =>
      seeFamily(disk, { folder, sessions: list.sessions, snapshots: 0 }),
    );
    return family.sessions.length === 0 ? undefined : family;
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'DATA_LOSS') return undefined;
    throw error;
  }
}

/** Removes what is left in the folder of an owner; `false`: there are sessions again. Under the lock. */
function eraseRest(
  { cache }: MaintenanceContext,
  owner: string,
  unreadable: ReadonlySet<string>,
): boolean {
  const { disk, tables, trees } = cache;
  const root = ownerFolder(owner);
  const scopes = disk.list(root).map((name) => `${root}/${name}`);
  const left = scopes.flatMap((scope) => cache.foldersIn(scope));
  if (left.some((folder) => !unreadable.has(folder))) return false;
  if (scopes.length > 0 || disk.stamp(root) !== undefined) {
    disk.move(root, `${trashFolder}/${tables.newId()}`);
  }
  for (const [folder, tree] of trees) {
    if (!folder.startsWith(`${root}/`)) continue;
    tree.refresh();
    trees.delete(folder);
  }
  return true;
}
