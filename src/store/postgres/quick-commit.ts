import { isWaymarkError } from '../../core/error.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import type { Committed, CommitWrite, RunRef } from '../contract/store.ts';
import { CommittedTurn, decideCommit } from '../rules/decide-commit.ts';
import { spendRows } from '../rules/spend.ts';
import { documentRef } from '../sql/content/document.ts';
import type { ManifestRef, ManifestWrite } from '../sql/content/manifest.ts';
import { type Home, receiptPlace } from '../sql/content/places.ts';
import { beforeChild, checkRoom, commonOf, isInPlace } from '../sql/history/plan-state.ts';
import { type View, viewOfRewrite } from '../sql/history/segments.ts';
import {
  runHome,
  type StateContext,
  type StateRows,
  stateRows,
} from '../sql/history/state-rows.ts';
import { type CommitResult, locationAfter, positionOf } from '../sql/runs/commit.ts';
import { readCommit } from '../sql/runs/commit-facts.ts';
import type { KnownRun } from '../sql/runs/held-runs.ts';
import { toReceipt } from '../sql/runs/requests.ts';
import { sealTitle } from '../sql/sessions/session-row.ts';
import { snapshotOf } from '../sql/snapshots/snapshot-row.ts';
import { fromHex, uuidText } from '../sql/values/bytes.ts';
import type { PostgresDatabase } from './database.ts';
import type { CommitAnswer } from './functions/commit-turn.ts';
import { commitStatement, moreNames, stateNames, turnNames } from './quick-commit-statement.ts';
import {
  type Decided,
  eventValues,
  moreValues,
  stateValues,
  turnValues,
} from './quick-commit-values.ts';
import type { PostgresValue } from './statements.ts';

/**
 * Commits in one round trip; `undefined` when it is not the usual case. The rules decide by what the process knows of the
 * run, or reads if it knows nothing. The function writes if that is still so.
 */
export async function quickCommit(
  db: PostgresDatabase,
  ref: RunRef,
  write: CommitWrite,
  context: StateContext,
): Promise<CommitResult | undefined> {
  const home = isUsual(ref, write) ? runHome(ref.runId, context) : undefined;
  if (home === undefined) return undefined;
  const events = eventValues(ref, write.events ?? [], home, context.cipher);
  const rows = stateRows(write, context);
  if (events === undefined || (write.base !== undefined && rows.base === undefined)) {
    return undefined;
  }
  // The function knows lists of artifacts and their parts, but neither lists of chunks nor files.
  if (rows.artifacts.kind === 'whole' && rows.artifacts.lists.length > 0) return undefined;
  if (rows.artifacts.kind === 'whole' && rows.artifacts.files.size > 0) return undefined;
  // Nor what a prune may have changed about a rewritten state that is not listed.
  if (rows.rewrite !== undefined && rows.base?.common !== undefined) return undefined;
  const { cipher, held } = context;
  const known =
    held.find(ref, write) ??
    (await db.read(() => readCommit(ref, write, rows.base, { cipher, onlyLooks: true })));
  held.forget(ref.runId);
  const decided = decide(known, write, rows);
  if (decided === undefined) return undefined;
  const turn = turnValues(ref, write, decided, home, context);
  const state = stateValues(rows);
  const more = moreValues(rows, events, db.blobLock);
  const values: PostgresValue[] = [
    ...turnNames.map((name) => turn[name]),
    ...stateNames.map((name) => state[name]),
    ...(more === undefined ? [] : moreNames.map((name) => more[name])),
    ...alongValues(ref, write, home, context),
  ];
  const commit = commitStatement(more !== undefined, {
    requests: write.requests !== undefined,
    spend: write.spend !== undefined,
    title: write.defaultTitle !== undefined,
  });
  const [row] = await db.query(commit, values);
  if (row === undefined || row.committed === null) return undefined;
  const answer = JSON.parse(row.committed) as CommitAnswer;
  held.continued(known, write, decided.decision, answer.row_id);
  return {
    committed: committedOf(write, rows, decided, answer, context),
    discards: answer.discarded !== null && answer.discarded > 0,
  };
}

/** Whether a commit is one that the function can write. */
function isUsual(
  { runId }: RunRef,
  { status, snapshotId, parentId, steered, spend }: CommitWrite,
): boolean {
  // Reservations are settled right after their calls; a commit does it only when that has failed.
  if (spend?.settles !== undefined) return false;
  if (status !== 'succeeded' || !isSnapshotId(runId) || !isSnapshotId(snapshotId)) return false;
  if (parentId !== undefined && !isSnapshotId(parentId)) return false;
  // The function does not know what earlier runs have left in the inbox.
  return steered === undefined || steered === 0;
}

/** Decides by the rules; `undefined` when the commit is to be decided again with the run held, as what is known may be out of date. */
function decide(known: KnownRun, write: CommitWrite, rows: StateRows): Decided | undefined {
  const decision = decideCommit(known.facts, write);
  // The function does not list a head.
  if (isWaymarkError(decision) || decision.listHeadAs !== null) return undefined;
  const { base, bodies } = rows;
  const position = positionOf(known.held, decision, rows, base !== undefined);
  const continues = base !== undefined && isInPlace(base, position);
  checkRoom((continues ? (base.view?.to ?? 0) : 0) + bodies.length);
  return { ...known, decision, isInPlace: continues };
}

/** What is recorded with a commit, in the order of its statement. */
function alongValues(
  { runId }: RunRef,
  { defaultTitle, requests, spend }: CommitWrite,
  home: Home,
  { cipher }: StateContext,
): readonly PostgresValue[] {
  const values: PostgresValue[] = [];
  if (defaultTitle !== undefined) values.push(String(sealTitle(defaultTitle, home, cipher)));
  if (requests !== undefined) {
    const { keys, receipt } = requests;
    const sealed = keys.map((key) => String(toReceipt(receipt, receiptPlace(key, runId), cipher)));
    values.push(keys.map(fromHex), sealed);
  }
  if (spend !== undefined) {
    const { owner = '', agent, sessionId } = spend;
    values.push(owner, agent, sessionId, JSON.stringify(spendRows(spend)));
  }
  return values;
}

function committedOf(
  write: CommitWrite,
  rows: StateRows,
  { decision, facts }: Decided,
  row: CommitAnswer,
  context: StateContext,
): Committed {
  const { rewrite, base } = rows;
  const placed = {
    view: viewOf(rows, row),
    viewRowId: row.view,
    common: rewrite === undefined ? base?.common : commonOf(rewrite.common, base),
    custom: documentRef(rows.custom, row.custom),
    artifacts: manifestRef(rows.artifacts, row),
  };
  const ref = locationAfter(row.row_id, decision, placed, context);
  const saved = { snapshotId: write.snapshotId, state: write.state, ref };
  return new CommittedTurn(saved, () =>
    snapshotOf(write, {
      createdAt: row.created_at,
      now: row.now,
      sessionId: facts.sessionId,
      parentId:
        row.line_id !== null
          ? uuidText(fromHex(row.line_id))
          : decision.parent === null
            ? undefined
            : write.parentId,
      index: decision.index,
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
