import { createHash } from 'node:crypto';
import { type Json, toJson } from '../../../core/json/json.ts';
import type { RunRef } from '../../contract/store.ts';
import type { Cipher } from '../content/cipher.ts';
import { openJson } from '../content/open-json.ts';
import { homeOf, journalPlace } from '../content/places.ts';
import { first, type Plan, run, type SqlValue, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { journal } from '../values/journal.ts';
import { noCrashes, type OpenRun, openRun } from './open-run.ts';

const selectSteps = statement<{ body: SqlValue }>(
  'step_get',
  `SELECT body FROM @journal WHERE run = $1 AND attempt = ${journal.steps} AND seq = $2`,
);
const writeSteps = statement(
  'step_save',
  `INSERT INTO @journal(run, session, attempt, seq, last, body)
   VALUES($1, $2, ${journal.steps}, $3, 0, $4)
   ON CONFLICT(run, attempt, seq) DO UPDATE SET body = excluded.body`,
);

export const forgetCrashes = statement(
  'step_progress',
  `UPDATE @runs SET ${noCrashes} WHERE session = $1`,
);

/** Steps whose keys have the same number: each with its result, if it has one. */
type StoredSteps = readonly (readonly [key: string, value?: Json])[];

/** The recorded result of a durable step. */
export function* getStep(
  ref: RunRef,
  key: string,
  { cipher }: StateContext,
): Plan<{ readonly value: Json | undefined } | undefined> {
  const held = yield* openRun(ref);
  const found = (yield* stepsAt(held, key, cipher)).find(([other]) => other === key);
  return found && { value: found[1] };
}

/** Records the result of a durable step; the first one stands. */
export function* saveStep(
  ref: RunRef,
  key: string,
  value: Json | undefined,
  { cipher }: StateContext,
): Plan<void> {
  const held = yield* openRun(ref);
  const steps = yield* stepsAt(held, key, cipher);
  if (steps.some(([other]) => other === key)) return;
  const result = value === undefined ? [] : [toJson(value, `The result of step "${key}"`)];
  const body = cipher.encrypt(
    JSON.stringify([...steps, [key, ...result]]),
    stepsPlace(held, numberOf(key)),
  );
  yield* run(writeSteps, held.id, held.session, numberOf(key), body);
  if (held.crashes > 0) yield* run(forgetCrashes, held.session);
}

function* stepsAt(held: OpenRun, key: string, cipher: Cipher): Plan<StoredSteps> {
  const number = numberOf(key);
  const row = yield* first(selectSteps, held.id, number);
  if (row === undefined) return [];
  return openJson(row.body, stepsPlace(held, number), cipher) as StoredSteps;
}

function stepsPlace(held: OpenRun, seq: number): string {
  return journalPlace(homeOf(held), held.id, { attempt: journal.steps, seq, last: 0 });
}

// Keys may be of any length and are content; a number of 31 bits finds them.
function numberOf(key: string): number {
  return createHash('sha256').update(key).digest().readUInt32BE() >>> 1;
}
