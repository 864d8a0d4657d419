import { emptyState } from '../../session/session-state.ts';
import { iso } from '../memory/reading.ts';
import { allRows } from '../memory/rows.ts';
import { type SessionRow, type SnapshotRow, sessionKey, type Tables } from '../memory/tables.ts';
import { toLine } from './checked-line.ts';
import type { Directory } from './directory.ts';
import { FileRow } from './file-row.ts';
import { pointerFile } from './layout.ts';
import {
  deadFields,
  requestFields,
  sessionFields,
  snapshotFields,
  type TreeLine,
  toChange,
  toEventLines,
  toTreeLine,
} from './rows.ts';
import { toRunLine } from './run-lines.ts';
import type { SessionTree } from './session-tree.ts';
import { artifactHashes, toDelta, type WrittenState } from './state-delta.ts';

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
  const { disk, tables } = directory;
  const sessions = [...tree.sessions.values()];
  const left = sessions.filter((session) => isThere(tables, session));
  const gone = sessions.filter((session) => !left.includes(session));
  // Before the journal: as long as a session is there, deleting it can be tried again.
  for (const { run } of gone) if (run !== undefined) directory.endRun(run.id);
  if (left.length === 0) removeTree(directory, tree);
  else {
    // Loaded from one journal, equal messages are the same objects.
    tree.unload();
    disk.replace(tree.name, rewrittenLines(tables, tree, left));
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
  const newArtifacts = function* (hashes: readonly string[]): Generator<Buffer | string, void> {
    for (const hash of hashes) if (!artifacts.has(hash)) yield* artifactLine(tree, hash);
    for (const hash of hashes) artifacts.add(hash);
  };
  yield `${tree.newHead()}\n`;
  for (const session of sessions) {
    const { id, run } = session;
    const { head: _, ...first } = toChange(session, sessionFields);
    yield toText({ session: { id, ...first } });
    for (const row of allRows(session)) {
      if (!(row instanceof FileRow)) continue;
      yield* newArtifacts(row.artifacts);
      const bases = [row.parent, last].filter((each) => each !== undefined && written.has(each));
      const state = toDelta(row.state, bases as readonly WrittenState[]);
      yield toText({ session: { id }, snapshots: [{ id: row.id, ...fieldsOf(row), state }] });
      written.add(row);
      last = row;
    }
    yield* newArtifacts(artifactHashes(run?.checkpoint?.state ?? emptyState));
    // A run may have begun with a state that was not listed and has been replaced. It is needed once more to read the run.
    const start = run?.start === undefined || written.has(run.start) ? undefined : run.start;
    if (start !== undefined) {
      const { parent: _, ...fields } = fieldsOf(start);
      yield toText({ session: { id }, snapshots: [{ id: start.id, ...fields }] });
    }
    yield toText(restOf(tables, session, start));
    for (const [runId, { session: other, kept }] of tables.events) {
      if (other !== session || run?.id === runId) continue;
      const events = toEventLines(runId, kept.batches);
      const endedAt = iso(tables.endedAt.get(runId) ?? 0);
      yield toText({ kept: true, session: { id }, events, ended: runId, endedAt });
    }
  }
  // The empty line at the end of a journal.
  yield '\n';
}

function fieldsOf(row: SnapshotRow): Record<string, unknown> {
  return toChange(row, snapshotFields);
}

/** Everything of a session besides its snapshots and the events of runs that have ended. */
function restOf(
  { requests, dead, events, snapshots }: Tables,
  session: SessionRow,
  start: SnapshotRow | undefined,
): TreeLine {
  const { id, head, nextIndex, run } = session;
  const letters = [...dead.values()].filter(
    (each) => each.session === session && snapshots.has(each.runId),
  );
  const keys = [...requests].filter(([, request]) => request.session === session);
  return toTreeLine({
    kept: true,
    session: { id, head: head?.id ?? null, nextIndex },
    run: run && toRunLine(run),
    events: run && toEventLines(run.id, events.get(run.id)?.kept.batches),
    dropped: start && [start.id],
    requests: keys.map(([key, request]) => ({ key, ...toChange(request, requestFields) })),
    dead: letters.map((letter) => toChange(letter, deadFields)),
  });
}

function toText(line: TreeLine): string {
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
