import { fileHashesIn } from '../../protocol/artifacts.ts';
import { iso } from '../memory/reading.ts';
import {
  inScope,
  type RunRow,
  type SessionRow,
  type SnapshotRow,
  type Tables,
} from '../memory/tables.ts';
import type { Directory } from './directory.ts';
import { dataLoss } from './disk.ts';
import { FileRow } from './file-row.ts';
import { pointerFile, requestFile, runFile, sessionFolder } from './layout.ts';
import { rewriteTree } from './rewrite-tree.ts';
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
import { toDelta, type WrittenState } from './state-delta.ts';

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
  const tree = treeOf(directory, session);
  const former = tree.saved.get(session.id)?.run;
  const ended = former?.id === session.run?.id ? undefined : former;
  const line = changeOf(directory, tree, session, ended);
  if (line !== undefined) writeLine(directory, tree, session, line);
  if (ended !== undefined) directory.endRun(ended.id);
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
  files.adopt(tree, fileHashesIn(listed), scope);
  const hasReached = line.run?.checkpoint?.state?.artifacts !== undefined;
  const reached = hasReached ? (run?.checkpoint?.state.artifacts ?? []) : [];
  const replaced = line.snapshots?.some((each) => each.state && tree.rows.has(each.id)) ?? false;
  tree.write(session, line, [...listed, ...reached]);
  if (replaced || line.dropped !== undefined) files.sweep(tree);
}

/**
 * The changes of a session that the journal does not have, as a line; `undefined`: none. Only rows that an operation can have
 * changed are compared, so that a turn costs the same at any length of the session.
 */
function changeOf(
  { tables, touched }: Directory,
  tree: SessionTree,
  session: SessionRow,
  ended: RunRow | undefined,
): TreeLine | undefined {
  const { run: open, id } = session;
  const saved = tree.saved.get(id);
  const rows = candidates(tables, tree, session, [...touched.snapshots, ended?.id]);
  const isThere = (row: SnapshotRow): boolean => tables.snapshots.get(row.id) === row;
  const snapshots = rows.filter(isThere).flatMap((row): readonly SnapshotLine[] => {
    const change = toChange<SnapshotRow>(row, snapshotFields, row.saved);
    const state = row.hasSavedState ? undefined : toDelta(row.state, basesOf(tree, row, rows));
    const isSame = tree.rows.has(row.id) && Object.keys(change).length === 0;
    return isSame ? [] : [{ id: row.id, ...change, ...(state && { state }) }];
  });
  const dropped = rows.filter((row) => !isThere(row)).map((row) => row.id);
  const events = [ended?.id ?? '', open?.id ?? ''].flatMap((runId) =>
    toEventLines(runId, tables.events.get(runId)?.kept.takeNew()),
  );
  const run = open && toRunLine(open, saved?.run?.id === open.id ? saved.run : undefined);
  const requests = [...touched.keys].flatMap((key) => {
    const request = tables.requests.get(key);
    const isNew = request?.session === session && tree.requests.get(key) !== request;
    return isNew ? { key, ...toChange(request, requestFields) } : [];
  });
  const endedAt = tables.endedAt.get(ended?.id ?? '');
  const dead = ended && tables.dead.get(ended.id);
  const undead = [...touched.snapshots].filter(
    (run) => tree.dead.has(run) && !tables.dead.has(run),
  );
  const line = toTreeLine({
    session: { id, ...toChange(session, sessionFields, saved) },
    snapshots,
    dropped,
    events,
    ended: ended?.id,
    endedAt: endedAt === undefined ? undefined : iso(endedAt),
    run,
    requests,
    dead: dead && [toChange(dead, deadFields)],
    undead,
  });
  // A line says at least which session it is about.
  const isNew = saved === undefined || Object.keys({ ...line.session, ...line }).length > 2;
  return isNew ? line : undefined;
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
