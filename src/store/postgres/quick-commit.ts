import { type Committed, type CommitWrite, isWithinTurn, type RunRef } from '../contract/store.ts';
import { CommittedTurn } from '../rules/committed.ts';
import { isSnapshotId } from '../rules/ids.ts';
import { spendRows } from '../rules/spend.ts';
import { documentRef } from '../sql/content/document.ts';
import type { ManifestRef, ManifestWrite } from '../sql/content/manifest.ts';
import { receiptPlace } from '../sql/content/places.ts';
import { asLocation } from '../sql/history/location.ts';
import { beforeChild, checkRoom, commonOf } from '../sql/history/plan-state.ts';
import { type View, viewOfRewrite } from '../sql/history/segments.ts';
import {
  runHome,
  type StateContext,
  type StateRows,
  stateRows,
} from '../sql/history/state-rows.ts';
import type { CommitResult } from '../sql/runs/commit.ts';
import { snapshotOf } from '../sql/runs/commit-row.ts';
import { toReceipt } from '../sql/runs/requests.ts';
import { sealTitle } from '../sql/sessions/title.ts';
import { fromHex, uuidText } from '../sql/values/bytes.ts';
import type { PostgresDatabase } from './database.ts';
import type { CommitAnswer } from './functions/commit-turn.ts';
import { commitStatement, moreNames, stateNames, turnNames } from './quick-commit-statement.ts';
import { eventValues, moreValues, stateValues, turnValues } from './quick-commit-values.ts';
import type { PostgresValue } from './statements.ts';

/** Commits in one round trip; `undefined` when it is not the usual case. */
export async function quickCommit(
  db: PostgresDatabase,
  ref: RunRef,
  write: CommitWrite,
  context: StateContext,
): Promise<CommitResult | undefined> {
  if (write.status !== 'succeeded' || !isSnapshotId(ref.runId)) return undefined;
  if (!isSnapshotId(write.snapshotId)) return undefined;
  // The function does not know what earlier runs have left in the inbox.
  if (write.steered !== undefined && write.steered > 0) return undefined;
  // The function would replace a head that is not listed, which an edit lists.
  if (write.event === 'edit') return undefined;
  // A run that was taken over and continues forgets the crashes before.
  if (!write.end && ref.attempt > 1) return undefined;
  if (write.parentId !== undefined && !isSnapshotId(write.parentId)) return undefined;
  const home = runHome(ref.runId, context);
  if (home === undefined) return undefined;
  const events = eventValues(ref, write.events ?? [], home, context.cipher);
  const rows = stateRows(write, context);
  if (events === undefined || (write.base !== undefined && rows.base === undefined)) {
    return undefined;
  }
  // The function knows lists of artifacts and their parts, but not lists of chunks.
  if (rows.artifacts.kind === 'whole' && rows.artifacts.lists.length > 0) return undefined;
  checkRoom((rows.base?.view?.to ?? 0) + rows.bodies.length);
  const values: PostgresValue[] = [];
  const turn = turnValues(ref, write, home, context);
  for (const name of turnNames) values.push(turn[name]);
  const state = stateValues(rows);
  for (const name of stateNames) values.push(state[name]);
  const more = moreValues(rows, events, db.blobLock);
  if (more !== undefined) for (const name of moreNames) values.push(more[name]);
  const { requests, defaultTitle } = write;
  if (defaultTitle !== undefined) {
    values.push(String(sealTitle(defaultTitle, home, context.cipher)));
  }
  if (requests !== undefined) {
    const { keys, receipt } = requests;
    const sealed = keys.map((key) =>
      String(toReceipt(receipt, receiptPlace(key, ref.runId), context.cipher)),
    );
    values.push(keys.map(fromHex), sealed);
  }
  const { spend } = write;
  if (spend !== undefined) {
    const { owner = '', agent, sessionId } = spend;
    values.push(owner, agent, sessionId, JSON.stringify(spendRows(spend)));
  }
  // Only the end of a run is recorded under its keys.
  const commit = commitStatement(
    isWithinTurn(write) ? 'commit_run_within' : 'commit_run',
    more !== undefined,
    {
      requests: requests !== undefined,
      spend: spend !== undefined,
      title: defaultTitle !== undefined,
    },
  );
  const [row] = await db.query(commit, values);
  if (row === undefined || row.committed === null) return undefined;
  const answer = JSON.parse(row.committed) as CommitAnswer;
  return {
    committed: committedOf(write, rows, answer, context),
    discards: answer.discarded !== null && answer.discarded > 0,
  };
}

function committedOf(
  write: CommitWrite,
  rows: StateRows,
  row: CommitAnswer,
  { database }: StateContext,
): Committed {
  const { rewrite, base } = rows;
  const isListed = write.listed !== false;
  const common = rewrite === undefined ? base?.common : commonOf(rewrite.common, base);
  const location = asLocation({
    database,
    snapshot: row.row_id,
    lineage: isListed ? row.row_id : row.line,
    view: viewOf(rows, row),
    viewRowId: row.view,
    common: isListed ? undefined : common,
    custom: documentRef(rows.custom, row.custom),
    artifacts: manifestRef(rows.artifacts, row),
  });
  const saved = { snapshotId: write.snapshotId, state: write.state, ref: location };
  return new CommittedTurn(saved, () =>
    snapshotOf(write, {
      createdAt: row.created_at,
      now: row.now,
      sessionId: row.session_id,
      parentId: row.line_id === null ? undefined : uuidText(fromHex(row.line_id)),
      index: row.idx,
      orphaned: false,
    }),
  );
}

function viewOf({ rewrite, base, bodies }: StateRows, { branch }: CommitAnswer): View {
  const before = base?.view;
  const isInPlace = before?.branch === branch;
  const from = isInPlace ? before.to : 0;
  if (rewrite !== undefined) return viewOfRewrite(rewrite, branch, from, bodies.length);
  if (isInPlace) return { ...before, to: from + bodies.length };
  const shared = before === undefined ? [] : beforeChild(before);
  return { before: shared, branch, from: 0, to: bodies.length };
}

function manifestRef(write: ManifestWrite, row: CommitAnswer): ManifestRef | undefined {
  if (write.kind === 'same') return write.ref;
  if (write.kind === 'none' || row.artifacts === null) return undefined;
  const parts = new Map([...write.known, ...(row.new_parts ?? [])]);
  return { rowId: row.artifacts, parts, chunks: write.knownChunks };
}
