import { sha256Hex } from '../../../core/platform.ts';
import { isSnapshotId } from '../../../protocol/ids.ts';
import type { RunRef, RunRequest, Scope, SteeringMessage } from '../../contract/store.ts';
import { decideSteer, leftInbox } from '../../rules/decide-steer.ts';
import type { Cipher } from '../content/cipher.ts';
import { openJson } from '../content/open-json.ts';
import {
  type Home,
  type HomeRow,
  homeIn,
  homeOf,
  journalPlace,
  requestPlace,
} from '../content/places.ts';
import {
  all,
  first,
  one,
  type Plan,
  readUnderLock,
  run,
  type SqlValue,
  statement,
} from '../database/query.ts';
import { fromHex, uuidBytes, uuidText } from '../values/bytes.ts';
import { type JournalKey, journal } from '../values/journal.ts';
import { scopeKey, sessionKey, toScope } from '../values/scope.ts';
import { openRun } from './open-run.ts';

const selectRun = readUnderLock<Held & { readonly stopping: number }>(
  'inbox_run',
  (d) => `
    SELECT r.id, r.session, r.stopping, z.owner, z.agent, z.id AS session_id
    FROM @runs r JOIN @sessions z ON z.row_id = r.session
    WHERE r.id = $1 AND z.owner = $2 AND z.agent = $3 ${d.lock('z, r')}`,
);

/** Adds a message to the inbox of a run: see {@link RunSupport.steer}. */
export function* steer(
  scope: Scope,
  runId: string,
  message: SteeringMessage,
  { cipher }: { readonly cipher: Cipher },
): Plan<boolean> {
  if (!isSnapshotId(runId)) return false;
  const held = yield* first(selectRun, uuidBytes(runId), ...scopeKey(scope));
  if (held === undefined || held.stopping === 1) return false;
  const { left, own } = yield* messagesOf(held, cipher);
  if (decideSteer([...left, ...own], message) === 'known') return true;
  const place = { id: held.id, home: homeOf(held) };
  yield* add(place, held.session, own.length, message, cipher);
  return true;
}

/** The inbox of a run under its current attempt, with what earlier runs have left. */
export function* readInbox(
  ref: RunRef,
  { cipher }: { readonly cipher: Cipher },
): Plan<readonly SteeringMessage[]> {
  const { left, own } = yield* messagesOf(yield* openRun(ref), cipher);
  return [...left, ...own];
}

/** A run, and the session that it belongs to. */
export type Held = JournalKey & HomeRow;

const selectInbox = statement<{ seq: number; body: SqlValue }>(
  'inbox_read',
  `SELECT seq, body FROM @journal WHERE run = $1 AND attempt = ${journal.inbox} ORDER BY seq`,
);
const selectAny = statement<{ found: number }>(
  'inbox_any',
  `SELECT 1 AS found FROM @journal WHERE run = $1 AND attempt = ${journal.inbox} LIMIT 1`,
);
const selectRequest = statement<{ request: SqlValue }>(
  'inbox_request',
  'SELECT request FROM @runs WHERE id = $1',
);
const insertMessage = statement(
  'inbox_add',
  `INSERT INTO @journal(run, session, attempt, seq, last, body) VALUES($1, $2, ${journal.inbox}, $3, 0, $4)`,
);
const deleteInbox = statement(
  'inbox_delete',
  `DELETE FROM @journal WHERE run = $1 AND attempt = ${journal.inbox}`,
);

/** An inbox: that of a run, or what the runs of a session have left, which stands under an id that no run has. */
interface Place {
  readonly id: Uint8Array;
  readonly home: Home;
}

function leftPlace(home: Home): Place {
  const { owner, agent, sessionId } = home;
  return { id: fromHex(sha256Hex(`inbox\0${owner}\0${agent}\0${sessionId}`).slice(0, 32)), home };
}

function* read({ id, home }: Place, cipher: Cipher): Plan<readonly SteeringMessage[]> {
  const rows = yield* all(selectInbox, id);
  return rows.map(
    ({ seq, body }) =>
      openJson(body, rowPlace(home, id, seq), cipher) as unknown as SteeringMessage,
  );
}

function rowPlace(home: Home, id: Uint8Array, seq: number): string {
  return journalPlace(home, id, { attempt: journal.inbox, seq, last: 0 });
}

function* add(
  { id, home }: Place,
  session: number,
  seq: number,
  message: SteeringMessage,
  cipher: Cipher,
): Plan<void> {
  const body = cipher.encrypt(JSON.stringify(message), rowPlace(home, id, seq));
  yield* run(insertMessage, id, session, seq, body);
}

/** The messages of a run's own inbox, and before them those that earlier runs have left. */
function* messagesOf(
  held: Held,
  cipher: Cipher,
): Plan<{ readonly left: readonly SteeringMessage[]; readonly own: readonly SteeringMessage[] }> {
  const home = homeOf(held);
  const own = yield* read({ id: held.id, home }, cipher);
  const keeps = yield* keepsInbox(held, home, cipher);
  return { left: keeps ? yield* read(leftPlace(home), cipher) : [], own };
}

function* keepsInbox(held: Held, home: Home, cipher: Cipher): Plan<boolean> {
  const { request } = yield* one(selectRequest, held.id);
  const opened = openJson(request, requestPlace(home, held.id), cipher) as Partial<RunRequest>;
  return opened.keepInbox === true;
}

/** Whether the runs of a session have left messages. */
export function* hasLeftInbox(scope: Scope, sessionId: string): Plan<boolean> {
  const { id } = leftPlace(homeIn(scope, sessionId));
  return (yield* first(selectAny, id)) !== undefined;
}

/** The messages that the runs of a session have left: see {@link RunSupport.readLeftInbox}. */
export function readLeftInbox(
  scope: Scope,
  sessionId: string,
  cipher: Cipher,
): Plan<readonly SteeringMessage[]> {
  const home = homeIn(toScope(...scopeKey(scope)), sessionKey(sessionId));
  return read(leftPlace(home), cipher);
}

/** The messages that a run leaves to its session's next run. */
export interface LeftInbox {
  readonly held: Held;
  readonly messages: readonly SteeringMessage[];
}

/** Reads the inbox of a run that ends: how many messages it has, and those that it leaves, if anything changes. */
export function* readRest(
  held: Held,
  taken: number,
  cipher: Cipher,
): Plan<{ readonly messages: number; readonly left: LeftInbox | undefined }> {
  const keeps = yield* keepsInbox(held, homeOf(held), cipher);
  const { left, own } = yield* messagesOf(held, cipher);
  const all = [...left, ...own];
  const isSame = !keeps || own.length + taken === 0;
  const rest = isSame ? undefined : { held, messages: leftInbox(all, taken, uuidText(held.id)) };
  return { messages: all.length, left: rest };
}

/** Leaves messages to the session's next run. Call it before the run ends. */
export function* writeRest({ held, messages }: LeftInbox, cipher: Cipher): Plan<void> {
  const place = leftPlace(homeOf(held));
  yield* run(deleteInbox, place.id);
  for (const [seq, message] of messages.entries()) {
    yield* add(place, held.session, seq, message, cipher);
  }
}

/** Leaves what a run has not taken to the session's next run. Call it before the run ends. */
export function* leaveInbox(held: Held, taken: number, cipher: Cipher): Plan<void> {
  const { left } = yield* readRest(held, taken, cipher);
  if (left !== undefined) yield* writeRest(left, cipher);
}

export const inboxStatements = [deleteInbox, insertMessage];
