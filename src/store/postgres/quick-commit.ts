import {
  type Committed,
  type CommitWrite,
  isWithinTurn,
  type RunEvent,
  type RunRef,
} from '../contract/store.ts';
import { CommittedTurn } from '../rules/committed.ts';
import { packEvents } from '../rules/event-body.ts';
import { isSnapshotId } from '../rules/ids.ts';
import { dayLength, spendCounters, spendRows } from '../rules/spend.ts';
import type { Cipher } from '../sql/content/cipher.ts';
import { type DocumentWrite, documentRef } from '../sql/content/document.ts';
import type { ManifestRef, ManifestWrite } from '../sql/content/manifest.ts';
import { type Home, journalPlace, receiptPlace } from '../sql/content/places.ts';
import { type SqlValue, type Statement, statement } from '../sql/database/query.ts';
import { asLocation } from '../sql/history/location.ts';
import { beforeChild, checkRoom, commonOf } from '../sql/history/plan-state.ts';
import { otherBranches, toStored, type View, viewOfRewrite } from '../sql/history/segments.ts';
import {
  runHome,
  type StateContext,
  type StateRows,
  stateRows,
} from '../sql/history/state-rows.ts';
import type { CommitResult } from '../sql/runs/commit.ts';
import { outcomeValues, snapshotOf } from '../sql/runs/commit-row.ts';
import { toReceipt } from '../sql/runs/requests.ts';
import { sealTitle } from '../sql/sessions/title.ts';
import { addToSpend } from '../sql/spend-support.ts';
import { fromHex, uuidBytes, uuidText } from '../sql/values/bytes.ts';
import type { PostgresDatabase } from './database.ts';
import { now } from './dialect.ts';
import {
  type CommitAnswer,
  moreParameters,
  stateParameters,
  turnParameters,
} from './functions/commit-turn.ts';
import type { PostgresValue } from './statements.ts';

type Values<Parameters> = Readonly<Record<keyof Parameters, PostgresValue>>;
type TurnValues = Values<typeof turnParameters>;
type StateValues = Values<typeof stateParameters>;
type MoreValues = Values<typeof moreParameters>;

const turnNames = Object.keys(turnParameters) as readonly (keyof TurnValues)[];
const stateNames = Object.keys(stateParameters) as readonly (keyof StateValues)[];
const moreNames = Object.keys(moreParameters) as readonly (keyof MoreValues)[];

// Most turns only add messages, and do not send what they do not have.
const few = [...turnNames, ...stateNames];
const all = [...few, ...moreNames];

type CommitRow = { readonly committed: string | null };

/** What a commit brings along besides its turn. */
interface Along {
  /** The result for its idempotency keys. */
  readonly requests: boolean;
  readonly spend: boolean;
  /** The title of a session that has none. */
  readonly title: boolean;
}

const statements = new Map<string, Statement<CommitRow>>();

/** A commit with everything it carries, in one statement. */
function commitStatement(
  called: 'commit_run' | 'commit_run_within',
  given: readonly string[],
  along: Along,
): Statement<CommitRow> {
  // Short: Postgres cuts the names of prepared statements.
  const name = [
    called === 'commit_run' ? 'quick_commit' : 'quick_within',
    ...(given === few ? [] : ['more']),
    ...(along.requests ? ['request'] : []),
    ...(along.spend ? ['spend'] : []),
    ...(along.title ? ['title'] : []),
  ].join('_');
  const known = statements.get(name);
  if (known !== undefined) return known;
  const title = along.title ? `, _title => $${given.length + 1}` : '';
  const call = `SELECT @${called}(${valuesOf(given)}${title}) AS committed`;
  const next = given.length + (along.title ? 2 : 1);
  const text = along.requests || along.spend ? withAlong(call, next, along) : call;
  const made = statement<CommitRow>(name, text);
  statements.set(name, made);
  return made;
}

/** The call with what is recorded besides, whose values are counted from a number on. */
function withAlong(call: string, from: number, { requests, spend }: Along): string {
  const parts = [`done AS MATERIALIZED (${call})`];
  let next = from;
  if (requests) {
    parts.push(`told AS (
       UPDATE @requests q SET receipt = k.receipt, at = ${now}
       FROM done CROSS JOIN unnest($${next++}::bytea[], $${next++}::text[]) k(key, receipt)
       WHERE done.committed IS NOT NULL AND q.key = k.key AND q.run = $1::bytea)`);
  }
  if (spend) {
    const counters = spendCounters.map((name) => `x.${name}`).join(', ');
    const declared = spendCounters.map((name) => `${name} bigint`).join(', ');
    parts.push(`paid AS (
       INSERT INTO @spend AS s(owner, agent, session, by_agent, model, currency, ${spendCounters.join(', ')}, day)
       SELECT $${next++}::text, $${next++}::text, $${next++}::text, x.by_agent, x.model, x.currency, ${counters}, ${now} / ${dayLength}
       FROM done CROSS JOIN json_to_recordset($${next++}::json) AS x(by_agent text, model text, currency text, ${declared})
       WHERE done.committed IS NOT NULL ${addToSpend})`);
  }
  return `WITH ${parts.join(',\n')}\nSELECT committed FROM done`;
}

function valuesOf(given: readonly string[]): string {
  return given.map((_, at) => `$${at + 1}`).join(', ');
}

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
    more === undefined ? few : all,
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

function turnValues(
  ref: RunRef,
  write: CommitWrite,
  home: Home,
  context: StateContext,
): TurnValues {
  const [turn, event, status, finish, hash, usage, totals, error] = outcomeValues(
    write,
    home,
    context,
  );
  const run = uuidBytes(ref.runId);
  return {
    run,
    attempt: ref.attempt,
    snapshot: write.snapshotId === ref.runId ? run : uuidBytes(write.snapshotId),
    parent: write.parentId === undefined ? null : uuidBytes(write.parentId),
    isListed: String(write.listed !== false),
    isEnd: String(write.end),
    isMidTurn: String(write.event === 'toolIterationEnd'),
    isOwn: String(write.end && write.event === 'detach' && write.snapshotId === ref.runId),
    turn,
    event,
    status,
    finish,
    hash,
    usage,
    totals,
    error,
  };
}

function stateValues({ base, bodies, length, custom, artifacts }: StateRows): StateValues {
  return {
    from: base?.snapshot ?? null,
    fromLineage: base?.lineage ?? null,
    branch: base?.view?.branch ?? null,
    branchLength: base?.view?.to ?? null,
    view: base?.viewRowId ?? null,
    bodies: bodies.map(String),
    length,
    custom: custom.kind === 'same' ? custom.ref.rowId : null,
    list: artifacts.kind === 'same' ? artifacts.ref.rowId : null,
  };
}

/** What a turn has besides messages; `undefined` when there is nothing. */
function moreValues(
  rows: StateRows,
  events: EventValues,
  blobLock: string,
): MoreValues | undefined {
  const { rewrite, custom, artifacts } = rows;
  const isUsual =
    rewrite === undefined &&
    (custom.kind === 'same' || custom.kind === 'none') &&
    (artifacts.kind === 'same' || artifacts.kind === 'none') &&
    events.eventBody === null;
  if (isUsual) return undefined;
  return {
    ...viewValues(rows),
    ...customValues(custom),
    ...listValues(artifacts),
    ...events,
    blobLock,
  };
}

// A branch that does not exist yet is written as 0, which means a view's own branch.
function viewValues({ rewrite, base, bodies }: StateRows) {
  const here = rewrite && base?.view && viewOfRewrite(rewrite, base.view.branch, base.view.to, 0);
  const fresh = rewrite && viewOfRewrite(rewrite, 0, 0, bodies.length);
  return {
    ownFromHere: here?.from ?? null,
    ownFromNew: fresh?.from ?? null,
    viewHere: here === undefined ? null : toStored(here),
    viewNew: fresh === undefined ? null : toStored(fresh),
    common: rewrite === undefined ? null : commonOf(rewrite.common, base),
    viewRefs: fresh === undefined ? [] : otherBranches(fresh),
  };
}

function customValues(write: DocumentWrite) {
  const isWritten = write.kind === 'patch' || write.kind === 'whole';
  return {
    customBody: isWritten ? write.body : null,
    customHash: write.kind === 'whole' ? write.digest : null,
    customPrev: write.kind === 'patch' ? write.to.rowId : null,
  };
}

function listValues(write: ManifestWrite) {
  const whole = write.kind === 'whole' ? write : undefined;
  return {
    listBody: whole?.body ?? null,
    listHash: whole?.digest ?? null,
    partHashes: (whole?.fresh ?? []).map(({ digest }) => digest),
    partBodies: (whole?.fresh ?? []).map(({ body }) => String(body)),
    knownParts: [...(whole?.known.values() ?? [])],
  };
}

type EventValues = Readonly<
  Record<'eventAttempt' | 'eventSeq' | 'eventLast' | 'eventBody', SqlValue>
>;

/** Events as one row; `undefined` when they are of several attempts. */
function eventValues(
  { runId }: RunRef,
  events: readonly RunEvent[],
  home: Home,
  cipher: Cipher,
): EventValues | undefined {
  const [begin] = events;
  const end = events.at(-1);
  if (begin === undefined || end === undefined) {
    return { eventAttempt: null, eventSeq: null, eventLast: null, eventBody: null };
  }
  if (begin.attempt !== end.attempt) return undefined;
  const row = { attempt: begin.attempt, seq: begin.seq, last: end.seq };
  const body = cipher.encrypt(packEvents(events), journalPlace(home, runId, row));
  return {
    eventAttempt: begin.attempt,
    eventSeq: begin.seq,
    eventLast: end.seq,
    eventBody: body,
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
