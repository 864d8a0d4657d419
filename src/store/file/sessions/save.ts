import type { Artifact } from '../../../protocol/state.ts';
import { inScope, type SessionRow } from '../../memory/tables.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { dataLoss } from '../directory/disk-error.ts';
import { keepNeededChunks, unneeded, withIntent } from '../directory/intent.ts';
import { safeName, scopeFolder } from '../directory/layout.ts';
import { writePointer } from './fork-pointer.ts';
import type { JournalLine } from './journal-line.ts';
import { homes, type SessionTree } from './session-tree.ts';
import { changeOf, receiptsOf, type Trace } from './session-tree-changes.ts';
import { artifactHash } from './state-delta.ts';

/**
 * Writes what an operation on the tables has changed about a session. It has happened when the journal's line is there: what
 * is written before that line does no harm without it, and readers repair what is missing after it.
 */
export function saveSession(cache: DirectoryCache, session: SessionRow, trace: Trace = {}): void {
  const { tables } = cache;
  const tree = familyOf(cache, session);
  const runFile = cache.runFile(session);
  const former = runFile.run;
  const open = session.run;
  const over = former === open ? undefined : former;
  const opened = open === former ? undefined : open;
  if (former !== undefined && former === open) runFile.update();
  // A run that is detached from its start: a pending snapshot without its run would never end.
  const isListed = opened?.row !== undefined;
  if (isListed) runFile.create(opened, { tree, session });
  const line = changeOf(tables, tree, session, { ...trace, ended: over?.id });
  if (line !== undefined) writeLine(cache, tree, session, line);
  // Publish the end of a turn only after it was saved.
  for (const run of new Set([former, open])) if (run !== undefined) cache.events.save(run.id);
  if (opened !== undefined) {
    if (!isListed) runFile.create(opened, { tree, session });
  } else if (over?.request.mode === 'attached') cache.rest(runFile);
  else if (over !== undefined) runFile.remove();
  if (over !== undefined) cache.uploads.end(over.id);
}

/** Writes what a run came to that has ended before. */
export function saveReceipt(
  cache: DirectoryCache,
  session: SessionRow,
  trace: Pick<Trace, 'ended' | 'receipt'>,
): void {
  const receipts = receiptsOf(cache.tables, trace);
  familyOf(cache, session).write(session, { session: { id: session.id }, receipts });
}

/** The family that has a session; a fork joins the family of its origin, any other session gets its own folder. */
function familyOf(cache: DirectoryCache, session: SessionRow): SessionTree {
  const { tables } = cache;
  const known = homes.get(session);
  if (known !== undefined) return known;
  const source = tables.snapshots.get(session.forkedFrom?.snapshotId ?? '')?.session;
  const shared =
    source !== undefined && inScope(source, session.scope) ? homes.get(source) : undefined;
  const tree = shared ?? cache.tree(ownFolder(session));
  tree.begin(session.scope, session.id);
  if (tree.scope === undefined) throw dataLoss(tree.journal.name, 'it belongs to another folder');
  return tree;
}

function ownFolder({ scope, id }: SessionRow): string {
  return `${scopeFolder(scope)}/${safeName(id)}`;
}

function writeLine(
  cache: DirectoryCache,
  tree: SessionTree,
  session: SessionRow,
  line: JournalLine,
): void {
  const artifacts = newArtifacts(cache, tree, line);
  const left = leftArtifacts(tree, line);
  const isNewFork = !tree.sessions.has(session.id) && tree.folder !== ownFolder(session);
  const write = (): void => {
    for (const [hash, artifact] of artifacts) tree.artifacts.write(artifact, hash);
    if (isNewFork) writePointer(cache.disk, session.scope, session.id, tree.folder);
    tree.write(session, line);
    const gone = left.filter((hash) => !tree.hasArtifact(hash));
    const hasData = gone.some((hash) => tree.artifacts.hasData(hash));
    for (const hash of gone) tree.artifacts.remove(hash);
    if (hasData) for (const name of unneeded(tree)) cache.disk.remove(name);
    if (left.length > 0 && tree.artifacts.mayWaste) keepNeededChunks(tree);
  };
  const folders = artifacts.size + left.length > 0 ? [tree.folder] : [];
  if (folders.length === 0 && !isNewFork) write();
  else withIntent(cache, { folders, sessions: isNewFork ? [session] : [] }, write);
}

/** Artifacts of states that a change replaces or drops, as far as the new states do not have them. */
function leftArtifacts(
  { rows }: SessionTree,
  { snapshots = [], dropped = [] }: JournalLine,
): readonly string[] {
  const written = snapshots.filter(({ state }) => state !== undefined);
  const kept = written.flatMap(
    ({ state }) => state?.artifacts ?? rows.get(state?.base ?? '')?.artifacts,
  );
  const before = [...written.map(({ id }) => id), ...dropped].flatMap(
    (id) => rows.get(id)?.artifacts ?? [],
  );
  return before.filter((hash) => !kept.includes(hash));
}

function newArtifacts(
  cache: DirectoryCache,
  tree: SessionTree,
  line: JournalLine,
): Map<string, Artifact> {
  const found = new Map<string, Artifact>();
  for (const { id, state } of line.snapshots ?? []) {
    if (state?.artifacts === undefined) continue;
    const artifacts = cache.tables.snapshots.get(id)?.state.artifacts ?? [];
    for (const artifact of artifacts) {
      const hash = artifactHash(artifact);
      if (!tree.artifacts.has(hash)) found.set(hash, artifact);
    }
  }
  return found;
}
