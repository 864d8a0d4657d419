import { iso } from '../memory/reading.ts';
import {
  type EffectRow,
  inScope,
  type SessionRow,
  type SnapshotRow,
  sessionKey,
  type Tables,
} from '../memory/tables.ts';
import { toLine } from './checked-line.ts';
import type { Directory } from './directory.ts';
import { dataLoss } from './disk.ts';
import { FileRow } from './file-row.ts';
import { pointerFile, requestFile, runFile, sessionFolder } from './layout.ts';
import {
  deadFields,
  requestFields,
  type SnapshotLine,
  sessionFields,
  snapshotFields,
  type TreeLine,
  toChange,
  toEventLines,
  toTreeLine,
} from './rows.ts';
import { toRunLine } from './run-lines.ts';
import { homeOf, type SessionTree } from './session-tree.ts';
import { toDelta } from './state-delta.ts';

/** Writes the changes that an operation made to the tables. */
export function saveChanges(directory: Directory): void {
  const { tables, touched } = directory;
  // Deletions are written from the last session to the first, so that one which sub-agents were started in comes after theirs.
  const rewritten = new Set<SessionTree>();
  for (const [key, session] of [...touched.sessions].reverse()) {
    const tree = session && !tables.sessions.has(key) ? homeOf(session) : undefined;
    if (tree === undefined) continue;
    rewritten.delete(tree);
    rewritten.add(tree);
  }
  for (const tree of rewritten) rewriteTree(directory, tree);
  const sessions = [...touched.sessions.keys()].flatMap((key) => tables.sessions.get(key) ?? []);
  const trees = new Set(sessions.map((session) => saveSession(directory, session)));
  for (const tree of trees) if (tree.isLargeGarbage()) rewriteTree(directory, tree);
}

/**
 * Writes the changes of a session. They are made when the journal has its line: a pointer that is written before it does no harm without
 * it, and one that is left after it is ignored.
 */
function saveSession(directory: Directory, session: SessionRow): SessionTree {
  const { touched } = directory;
  const tree = treeOf(directory, session);
  const saved = tree.saved.get(session.id);
  const ended = saved?.run?.id === session.run?.id ? undefined : saved?.run?.id;
  const line = changeOf(directory.tables, tree, session, touched, ended);
  // A line says at least which session it is about.
  const isNew = saved === undefined || Object.keys({ ...line.session, ...line }).length > 2;
  if (isNew) writeLine(directory, tree, session, line);
  if (ended !== undefined) {
    directory.endRun(ended);
    directory.files.sweepRest(tree);
  }
  return tree;
}

/** The tree of a session. A fork joins the tree of its source; any other session gets a folder. */
function treeOf(directory: Directory, session: SessionRow): SessionTree {
  const known = homeOf(session);
  if (known !== undefined) return known;
  const source = directory.tables.snapshots.get(session.forkedFrom?.snapshotId ?? '')?.session;
  const shared = source && inScope(source, session.scope) ? homeOf(source) : undefined;
  const tree = shared ?? directory.tree(sessionFolder(session.scope, session.id));
  tree.begin(session.scope, session.id);
  if (tree.scope === undefined) throw dataLoss(tree.name, 'it belongs to another folder');
  return tree;
}

function writeLine(
  directory: Directory,
  tree: SessionTree,
  session: SessionRow,
  line: TreeLine,
): void {
  const { tables, files } = directory;
  const { scope, id, run } = session;
  const point = (name: string, durable = true): void =>
    directory.writePointer(name, tree.folder, durable);
  const isFork = tree.folder !== sessionFolder(scope, id);
  if (isFork && !tree.sessions.has(id)) point(pointerFile(scope, id));
  if (run !== undefined && tree.saved.get(id)?.run?.id !== run.id) {
    point(runFile(run.id), run.request.mode !== 'attached');
    for (const each of line.requests ?? []) if (each.runId === run.id) point(requestFile(each.key));
  }
  // The artifacts of the snapshots that do not have those of their bases.
  const listed = (line.snapshots ?? []).flatMap((each) =>
    each.state?.artifacts === undefined
      ? []
      : (tables.snapshots.get(each.id)?.state.artifacts ?? []),
  );
  files.adopt(tree, listed, scope);
  const hasReached = line.run?.checkpoint?.state?.artifacts !== undefined;
  const reached = hasReached ? (run?.checkpoint?.state.artifacts ?? []) : [];
  const replaced = line.snapshots?.some((each) => each.state && tree.rows.has(each.id)) ?? false;
  tree.write(session, line, [...listed, ...reached]);
  if (replaced || line.dropped !== undefined) files.sweep(tree);
}

/** The lines of a journal, as far as they have been written. */
type Written = Pick<SessionTree, 'saved' | 'rows' | 'requests' | 'dead'>;

/** Rows that may have changed: the ids of snapshots and runs, and the keys of requests. */
interface Named {
  readonly snapshots: Iterable<string>;
  readonly keys: Iterable<string>;
}

/**
 * The changes of a session that a journal does not have, as a line. Only rows that an operation can have changed are compared, so that a
 * turn costs the same at any length of the session.
 */
function changeOf(
  tables: Tables,
  written: Written,
  session: SessionRow,
  named: Named,
  ended?: string,
): TreeLine {
  const { run: open, id } = session;
  const saved = written.saved.get(id);
  const ids = ended === undefined ? [...named.snapshots] : [...named.snapshots, ended];
  const rows = candidates(tables, saved, session, ids);
  const isThere = (row: SnapshotRow): boolean => tables.snapshots.get(row.id) === row;
  const dropped = rows.filter((row) => !isThere(row)).map((row) => row.id);
  const events = [ended ?? '', open?.id ?? ''].flatMap((runId) =>
    toEventLines(runId, tables.events.get(runId)?.kept.takeNew()),
  );
  const run = open && toRunLine(open, saved?.run?.id === open.id ? saved.run : undefined);
  const requests = [...named.keys].flatMap((key) => {
    const request = tables.requests.get(key);
    const isNew = request?.session === session && written.requests.get(key) !== request;
    return isNew ? { key, ...toChange(request, requestFields) } : [];
  });
  const endedAt = tables.endedAt.get(ended ?? '');
  const letters = ids.flatMap((runId) => tables.dead.get(runId) ?? []);
  const dead = letters.filter(({ runId, session: of }) => {
    return of === session && !written.dead.has(runId) && tables.snapshots.has(runId);
  });
  return toTreeLine({
    session: { id, ...toChange(session, sessionFields, saved) },
    snapshots: toSnapshotLines(written, session, rows.filter(isThere)),
    dropped,
    events,
    ended,
    endedAt: endedAt === undefined ? undefined : iso(endedAt),
    run,
    requests,
    dead: dead.map((letter) => toChange(letter, deadFields)),
    undead: ids.filter((runId) => written.dead.has(runId) && !tables.dead.has(runId)),
    ...effectsOf(session, saved),
  });
}

/** The changes of a session's effects. */
function effectsOf(
  { effects }: SessionRow,
  saved: Pick<SessionRow, 'effects'> | undefined,
): Pick<TreeLine, 'effects' | 'noEffects'> {
  if (effects === saved?.effects) return {};
  const isNew = ([key, row]: readonly [string, EffectRow]): boolean =>
    saved?.effects?.get(key) !== row;
  return {
    effects: [...(effects ?? [])].filter(isNew).map(([, row]) => row),
    noEffects: [...(saved?.effects?.keys() ?? [])].filter((key) => !effects?.has(key)),
  };
}

/** The rows that may have changed: new ones in the list, the heads before and after, and those that were named. */
function candidates(
  { snapshots }: Tables,
  saved: { readonly listed: number; readonly head: SnapshotRow | undefined } | undefined,
  session: SessionRow,
  named: readonly string[],
): readonly FileRow[] {
  const rows = new Set<SnapshotRow | undefined>([
    ...session.listed.slice(saved?.listed ?? 0),
    ...named.map((id) => snapshots.get(id)),
    saved?.head,
    session.head,
    session.run?.row,
  ]);
  const own = [...rows].filter((row) => row instanceof FileRow && row.session === session);
  return (own as FileRow[]).sort((a, b) => orderOf(a) - orderOf(b));
}

// Parents come before their children, and rows that are not listed have no children.
function orderOf({ index }: SnapshotRow): number {
  return index < 0 ? Number.MAX_SAFE_INTEGER : index;
}

/** The changes of rows, in this order. A state is the difference to one that is written before it. */
function toSnapshotLines(
  { saved, rows }: Written,
  session: SessionRow,
  changed: readonly FileRow[],
): readonly SnapshotLine[] {
  const before = saved.get(session.id)?.head;
  const source = rows.get(session.forkedFrom?.snapshotId ?? '');
  // A new session in the tree probably has messages of the sessions before it.
  let last = saved.has(session.id) ? undefined : [...rows.values()].at(-1);
  const done = new Set<SnapshotRow>();
  const isWritten = (row: SnapshotRow | undefined): row is FileRow =>
    row instanceof FileRow && (done.has(row) || (rows.get(row.id) === row && row.hasSavedState));
  return changed.flatMap((row): readonly SnapshotLine[] => {
    const known = rows.get(row.id) === row;
    const change = toChange<SnapshotRow>(row, snapshotFields, known ? row.saved : {});
    // The likeliest base first. States are loaded only if they are needed.
    const likely = new Set([row.parent, before, session.run?.base, source, last]);
    const state =
      known && row.hasSavedState ? undefined : toDelta(row.state, [...likely].filter(isWritten));
    done.add(row);
    last = row;
    if (known && Object.keys(change).length === 0) return [];
    return [{ id: row.id, ...change, ...(state && { state }) }];
  });
}

/** Whether snapshots or requests of a journal are no longer in the tables. */
export function hasLost({ snapshots, requests }: Tables, tree: SessionTree): boolean {
  const hasLostRow = [...tree.rows.values()].some((row) => snapshots.get(row.id) !== row);
  return hasLostRow || [...tree.requests].some(([key, row]) => requests.get(key) !== row);
}

/**
 * Writes the journal of a tree again, with the rows that are in the tables, and reads it again. When this returns, the content of all
 * other rows is gone from the disk.
 */
export function rewriteTree(directory: Directory, tree: SessionTree): void {
  const { disk, tables, files } = directory;
  const sessions = [...tree.sessions.values()];
  const left = sessions.filter(
    (each) => tables.sessions.get(sessionKey(each.scope, each.id)) === each,
  );
  const gone = sessions.filter((each) => !left.includes(each));
  // Before the journal: as long as a session is there, deleting it can be tried again.
  for (const { run } of gone) if (run !== undefined) directory.endRun(run.id);
  if (left.length === 0) removeTree(directory, tree);
  else {
    // Loaded from one journal, equal messages are the same objects.
    tree.unload();
    tree.journal.rewrite(rewrittenLines(tables, tree, left));
  }
  for (const { scope, id } of gone) disk.unlink(pointerFile(scope, id));
  directory.forgetTree(tree);
  const rewritten = directory.refreshTree(tree.folder, { isLoaded: false });
  if (rewritten !== undefined) files.sweep(rewritten);
}

/** Removes the folder of a tree, and the folders above it that are empty then. */
export function removeTree({ disk }: Directory, { folder }: SessionTree): void {
  disk.discard(folder);
  const scope = folder.slice(0, folder.lastIndexOf('/'));
  if (disk.removeEmpty(scope)) disk.removeEmpty(scope.slice(0, scope.lastIndexOf('/')));
}

/** The lines of a rewritten journal: sessions as if they were new, a line for each snapshot, and the events of their runs. */
function* rewrittenLines(
  tables: Tables,
  tree: SessionTree,
  sessions: readonly SessionRow[],
): Generator<Buffer | string, void> {
  const rows = new Map<string, FileRow>();
  const written: Written = { saved: new Map(), rows, requests: new Map(), dead: new Set() };
  const artifacts = new Set<string>();
  // The line of an artifact as it is. A missing one stays missing, for `verify` to report.
  const newArtifacts = function* (hashes: readonly string[] = []): Generator<Buffer, void> {
    for (const hash of hashes) {
      const place = artifacts.has(hash) ? undefined : tree.artifacts.get(hash);
      artifacts.add(hash);
      const bytes = place && tree.readLine(place);
      if (bytes !== undefined) yield bytes;
    }
  };
  yield tree.newHead();
  for (const session of sessions) {
    const { id, nextIndex, run } = session;
    const named = { snapshots: tables.dead.keys(), keys: tables.requests.keys() };
    const line = changeOf(tables, written, session, named);
    const { session: fields, snapshots = [], events: _, ...rest } = line;
    const { head, ...first } = fields;
    yield toLine({ session: first });
    for (const each of snapshots) {
      yield* newArtifacts(each.state?.artifacts);
      yield toLine({ session: { id }, snapshots: [each] });
      const row = tables.snapshots.get(each.id);
      if (row instanceof FileRow) rows.set(each.id, row);
    }
    yield* newArtifacts(rest.run?.checkpoint?.state?.artifacts);
    // A run may have begun with a state that was not listed and has been replaced. It is needed once more to read the run.
    const replaced = run?.start === undefined || rows.has(run.start.id) ? [] : [run.start];
    for (const row of replaced) {
      const { parent: __, ...snapshot } = toChange(row, snapshotFields);
      yield toLine({ session: { id }, snapshots: [{ id: row.id, ...snapshot }] });
    }
    const dropped = replaced.map((row) => row.id);
    yield toLine(toTreeLine({ kept: true, session: { id, head, nextIndex }, ...rest, dropped }));
    for (const [runId, { session: other, kept }] of tables.events) {
      if (other !== session) continue;
      const events = toEventLines(runId, kept.batches);
      const endedAt = iso(tables.endedAt.get(runId) ?? 0);
      const end = runId === run?.id ? {} : { ended: runId, endedAt };
      yield toLine({ kept: true, session: { id }, events, ...end });
    }
  }
}
