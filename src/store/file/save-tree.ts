import type { Json } from '../../core/json/json.ts';
import type { JsonPatch } from '../../core/json/patch.ts';
import { fileHashesIn } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import { type History, historyDelta } from '../../session/history.ts';
import { requestTtl } from '../contract/store.ts';
import { allRows } from '../memory/rows.ts';
import {
  inScope,
  type SessionRow,
  type SnapshotRow,
  sessionKey,
  type Tables,
} from '../memory/tables.ts';
import { toLine } from './checked-line.ts';
import type { Directory } from './directory.ts';
import { dataLoss } from './disk.ts';
import { pointerFile, sessionFolder } from './layout.ts';
import {
  FileRow,
  iso,
  type SnapshotLine,
  sessionFields,
  type TreeLine,
  toChange,
  toDeadLine,
  toSnapshotLine,
} from './rows.ts';
import { homeOf, type SessionTree } from './session-tree.ts';
import { artifactHash, toDelta, type WrittenState } from './state-delta.ts';

/** Details of an operation that the rows of its session do not show. */
export interface Trace {
  /** The snapshot that it named. */
  readonly snapshotId?: string | undefined;
  /** The change of the custom state. */
  readonly customPatch?: JsonPatch | undefined;
  /** The result of the run that it has ended, for repeated requests. */
  readonly receipt?: Json | undefined;
  /** A takeover must not send events of a checkpoint again, so they are written before it. */
  readonly eventsFirst?: boolean;
}

/** Writes the changes that an operation made to the tables. */
export function saveChanges(directory: Directory, trace: Trace = {}): void {
  const { tables, used, added, gone, events, spend } = directory;
  tables.requests.clear();
  spend.save();
  // Deletions are written from the last session to the first, so that one which sub-agents were started in comes after theirs.
  const lost = new Set<SessionTree>();
  for (const session of [...gone].reverse()) {
    const tree = homeOf(session);
    if (tree === undefined) continue;
    lost.delete(tree);
    lost.add(tree);
  }
  if (lost.size > 0) events.sweep();
  for (const tree of lost) rewriteTree(directory, tree);
  // The others that were added have been read from their journals.
  const created = [...added].filter((session) => homeOf(session) === undefined);
  for (const session of new Set([...used, ...created])) {
    if (isThere(tables, session)) saveSession(directory, session, trace);
  }
  events.sweep();
}

/**
 * Writes the changes of a session. They are made when the journal has its line: files that are written before it do no harm
 * without it, and readers recover from missing ones after it.
 */
function saveSession(directory: Directory, session: SessionRow, trace: Trace): void {
  const runFile = directory.runFile(session);
  // Before the tree: a process may have left a run of a session that it did not write, and looking for that session forgets its tree.
  runFile.journal.refresh();
  const tree = treeOf(directory, session);
  const former = runFile.run;
  const open = session.run;
  const ended = former === open ? undefined : former;
  const opened = former === open ? undefined : open;
  if (open !== undefined && trace.eventsFirst === true) directory.events.save(open.id);
  if (former !== undefined && former === open) runFile.update();
  // A pending snapshot without its run would never end, so the run comes first.
  const isListed = opened?.row !== undefined;
  if (opened !== undefined && isListed) runFile.create(opened, tree);
  const line = changeOf(directory.tables, tree, session, { ...trace, ended: ended?.id });
  if (line !== undefined) writeLine(directory, tree, session, line);
  // Publish the end of a turn only after it was saved.
  for (const run of new Set([former, open])) if (run !== undefined) directory.events.save(run.id);
  if (opened !== undefined) {
    if (!isListed) runFile.create(opened, tree);
  } else if (ended !== undefined) directory.removeRunFile(runFile);
  if (ended !== undefined) directory.files.endUploads(ended.id);
  const { size } = tree.journal;
  if (size < tree.checkedFrom) return;
  // The next time is when it has doubled, so that not every turn counts.
  if (tree.garbage() < size / 2) tree.checkedFrom = 2 * size;
  else rewriteTree(directory, tree);
}

/** Writes the result of a run that has ended before. */
export function saveReceipt(
  directory: Directory,
  session: SessionRow,
  runId: string,
  value: Json,
): void {
  const at = iso(directory.tables.clock.now());
  const line = { session: { id: session.id }, receipts: [{ run: runId, at, value }] };
  treeOf(directory, session).write(session, line);
}

/** The tree of a session. A fork joins the tree of its source; any other session gets a folder. */
function treeOf(directory: Directory, session: SessionRow): SessionTree {
  const known = homeOf(session);
  if (known !== undefined) return known;
  const source = directory.tables.snapshots.get(session.forkedFrom?.snapshotId ?? '')?.session;
  const shared = source && inScope(source, session.scope) ? homeOf(source) : undefined;
  const tree = shared ?? directory.tree(sessionFolder(session.scope, session.id));
  tree.begin(session.scope, session.id);
  if (tree.scope === undefined) throw dataLoss(tree.journal.name, 'it belongs to another folder');
  return tree;
}

function writeLine(
  directory: Directory,
  tree: SessionTree,
  session: SessionRow,
  line: TreeLine,
): void {
  const artifacts = newArtifacts(directory.tables, tree, line);
  const replaced = line.snapshots?.some(({ id, state }) => state && tree.rows.has(id)) ?? false;
  directory.files.adopt(tree, fileHashesIn([...artifacts.values()]), session.scope);
  const isFork = tree.folder !== sessionFolder(session.scope, session.id);
  if (isFork && !tree.sessions.has(session.id)) directory.writePointer(session, tree);
  tree.write(session, line, artifacts);
  if (replaced || line.dropped !== undefined) directory.files.sweep(tree);
}

/** The artifacts of new states that the journal does not have. */
function newArtifacts(
  { snapshots }: Tables,
  tree: SessionTree,
  line: TreeLine,
): Map<string, Artifact> {
  const found = new Map<string, Artifact>();
  for (const { id, state } of line.snapshots ?? []) {
    if (state?.artifacts === undefined) continue;
    for (const artifact of snapshots.get(id)?.state.artifacts ?? []) {
      const hash = artifactHash(artifact);
      if (!tree.artifacts.has(hash)) found.set(hash, artifact);
    }
  }
  return found;
}

/**
 * The changes of a session that the journal does not have, as a line; `undefined`: none. Only rows that an operation can have
 * changed are compared, so that a turn costs the same at any length of the session.
 */
function changeOf(
  tables: Tables,
  tree: SessionTree,
  session: SessionRow,
  { ended, receipt, snapshotId, customPatch }: Trace & { readonly ended: string | undefined },
): TreeLine | undefined {
  const saved = tree.saved.get(session.id);
  const line = { id: session.id, ...toChange(session, sessionFields, saved?.fields) };
  const rows = candidates(tables, tree, session, [snapshotId, ended]);
  const isThere = (row: SnapshotRow): boolean => tables.snapshots.get(row.id) === row;
  const snapshots: SnapshotLine[] = [];
  for (const row of rows.filter(isThere)) {
    if (row.isSaved) continue;
    const state = row.hasSavedState
      ? undefined
      : toDelta(row.state, basesOf(tree, row, rows), customPatch);
    snapshots.push({ ...toSnapshotLine(row), ...(state === undefined ? {} : { state }) });
  }
  const dropped = rows.filter((row) => !isThere(row)).map((row) => row.id);
  const dead = ended === undefined ? undefined : tables.dead.get(ended);
  const isSame = saved !== undefined && Object.keys(line).length === 1;
  if (isSame && snapshots.length + dropped.length === 0 && ended === undefined) return undefined;
  const at = iso(tables.clock.now());
  return {
    session: line,
    ...(snapshots.length === 0 ? {} : { snapshots }),
    ...(dropped.length === 0 ? {} : { dropped }),
    ...(ended === undefined ? {} : { ended }),
    ...(ended === undefined || receipt === undefined
      ? {}
      : { receipts: [{ run: ended, at, value: receipt }] }),
    ...(dead === undefined ? {} : { dead: [toDeadLine(dead)] }),
  };
}

/** The rows that may have changed: new ones in the list, the heads before and after, and those that were named. */
function candidates(
  { snapshots }: Tables,
  tree: SessionTree,
  session: SessionRow,
  named: readonly (string | undefined)[],
): readonly FileRow[] {
  const saved = tree.saved.get(session.id);
  const rows = new Set<SnapshotRow | undefined>([
    ...session.listed.slice(saved?.listed ?? 0),
    ...named.map((id = '') => snapshots.get(id)),
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

/** The states that a state may be written as a difference to, the likeliest first. They are loaded only if they are needed. */
function basesOf(
  tree: SessionTree,
  row: FileRow,
  writing: readonly FileRow[],
): readonly WrittenState[] {
  const { session, parent } = row;
  const before = writing.slice(0, writing.indexOf(row));
  const likely = new Set<SnapshotRow | undefined>([
    parent,
    tree.saved.get(session.id)?.head,
    session.run?.base,
    tree.rows.get(session.forkedFrom?.snapshotId ?? ''),
  ]);
  const rows = [...likely].filter((each) => each instanceof FileRow);
  return rows.filter(
    (each) => (tree.rows.get(each.id) === each && each.hasSavedState) || before.includes(each),
  );
}

/** Whether snapshots of a journal are no longer in the tables. */
export function hasLost({ snapshots }: Tables, { rows }: SessionTree): boolean {
  return [...rows.values()].some((row) => snapshots.get(row.id) !== row);
}

/**
 * Writes the journal of a tree again, with the rows that are in the tables, and reads it again. When this returns, the content of all
 * other rows is gone from the disk.
 */
export function rewriteTree(directory: Directory, tree: SessionTree): void {
  const { disk, tables } = directory;
  const sessions = [...tree.sessions.values()];
  const left = sessions.filter((session) => isThere(tables, session));
  const gone = sessions.filter((session) => !left.includes(session));
  // Before the journal: as long as a session is there, deleting it can be tried again.
  for (const session of gone) directory.removeRunFile(directory.runFile(session));
  if (left.length === 0) removeTree(directory, tree);
  else {
    // Loaded from one journal, equal messages are the same objects.
    tree.unload();
    disk.replace(tree.journal.name, rewrittenLines(tables, tree, left));
    for (const row of tree.rows.values()) {
      if (tables.snapshots.get(row.id) !== row) tree.rows.delete(row.id);
    }
    directory.files.sweep(tree);
  }
  for (const { scope, id } of gone) disk.unlink(pointerFile(scope, id));
  directory.forgetTree(tree);
  directory.refreshTree(tree.folder, { isLoaded: false });
}

/** Removes the folder of a tree, and the folders above it that are empty then. */
export function removeTree({ disk, tables }: Directory, { folder }: SessionTree): void {
  disk.discard(folder, tables.newId());
  const scope = folder.slice(0, folder.lastIndexOf('/'));
  if (disk.removeEmpty(scope)) disk.removeEmpty(scope.slice(0, scope.lastIndexOf('/')));
}

/** Whether the tables have a session. */
function isThere({ sessions }: Tables, session: SessionRow): boolean {
  return sessions.get(sessionKey(session.scope, session.id)) === session;
}

/** The content of a rewritten journal. */
function* rewrittenLines(
  tables: Tables,
  tree: SessionTree,
  sessions: readonly SessionRow[],
): Generator<Buffer | string, void> {
  const written = new Set<SnapshotRow>();
  let last: SnapshotRow | undefined;
  const artifacts = new Set<string>();
  yield `${tree.newHead()}\n`;
  for (const session of sessions) {
    const { id, head, nextIndex } = session;
    const { head: _, ...first } = toChange(session, sessionFields);
    yield toText({ session: { id, ...first } });
    for (const row of allRows(session)) {
      if (!(row instanceof FileRow)) continue;
      for (const hash of row.artifacts) {
        if (!artifacts.has(hash)) yield* artifactLine(tree, hash);
        artifacts.add(hash);
      }
      const parent = row.parent !== undefined && written.has(row.parent) ? row.parent : undefined;
      const state = toDelta(row.state, nearest(row, parent, last));
      yield toText({ session: { id }, snapshots: [{ ...toSnapshotLine(row), state }] });
      written.add(row);
      last = row;
    }
    const ended = tree.lastEnded.get(id);
    const dead = [...tables.dead.values()].filter(
      (each) => each.session === session && tables.snapshots.has(each.runId),
    );
    yield toText({
      session: { id, head: head?.id ?? null, nextIndex },
      ...(ended === undefined ? {} : { ended }),
      ...(dead.length === 0 ? {} : { dead: dead.map(toDeadLine) }),
    });
  }
  const isLeft = new Set(sessions.map(({ id }) => id));
  for (const [run, { sessionId, at, value }] of tree.receipts) {
    if (at <= tables.clock.now() - requestTtl || !isLeft.has(sessionId)) continue;
    yield toText({ session: { id: sessionId }, receipts: [{ run, at: iso(at), value }] });
  }
  // The empty line at the end of a journal.
  yield '\n';
}

function toText(line: object): string {
  return `${toLine(line)}\n`;
}

/** The line of an artifact as it is. A missing one stays missing, for `verify` to report. */
function* artifactLine(tree: SessionTree, hash: string): Generator<Buffer | string, void> {
  const place = tree.artifacts.get(hash);
  const bytes = place && tree.readLine(place);
  if (bytes === undefined) return;
  yield bytes;
  yield '\n';
}

/** The row from which the fewest messages are new. */
function nearest(
  { state: { history } }: SnapshotRow,
  ...rows: readonly (SnapshotRow | undefined)[]
): readonly WrittenState[] {
  const known = rows.filter((row) => row !== undefined);
  const counts = new Map(known.map((row) => [row, newMessages(row.state.history, history)]));
  return known.toSorted((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0)).slice(0, 1);
}

function newMessages(base: History, next: History): number {
  const delta = historyDelta(base, next);
  if (delta.kind === 'append') return delta.messages.length;
  return delta.pieces.reduce(
    (count, piece) => count + (piece.kind === 'new' ? piece.messages.length : 0),
    0,
  );
}
