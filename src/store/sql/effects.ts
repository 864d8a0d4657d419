import { defined, toJson } from '../../core/json/json.ts';
import type { Effect, EffectSupport, RunRef, Scope, StoredEffect } from '../contract/store.ts';
import type { Cipher } from './content/cipher.ts';
import { openJson } from './content/open-json.ts';
import { effectPlace } from './content/places.ts';
import { all, type Plan, run, type SqlValue, statement } from './database/query.ts';
import { openRun } from './runs/open-run.ts';
import { forgetCrashes } from './runs/steps.ts';
import { findSession } from './sessions/sessions.ts';
import type { SqlContext } from './sql-context.ts';
import { hashBytes, hexOf, iso, uuidText } from './values/bytes.ts';
import { scopeKey } from './values/scope.ts';

const upsertEffect = statement(
  'effect_save',
  `INSERT INTO @effects(session, key, run, at, body) VALUES($1, $2, $3, $4, $5)
   ON CONFLICT(key, session) DO UPDATE SET run = excluded.run, at = excluded.at, body = excluded.body`,
);
const deleteEffect = statement(
  'effect_drop',
  'DELETE FROM @effects WHERE session = $1 AND key = $2',
);
const selectEffects = statement<{
  key: Uint8Array;
  run: Uint8Array;
  at: number;
  undone_at: number | null;
  body: SqlValue;
}>(
  'effect_list',
  'SELECT key, run, at, undone_at, body FROM @effects WHERE session = $1 ORDER BY at, row_id',
);
const selectShared = statement<{ key: Uint8Array; session_id: string }>(
  'effect_shared',
  `SELECT o.key, z.id AS session_id FROM @effects e JOIN @effects o ON o.key = e.key AND o.session <> e.session
   JOIN @sessions z ON z.row_id = o.session WHERE e.session = $1 ORDER BY z.id`,
);
const updateUndone = statement(
  'effect_undone',
  (d) => `UPDATE @effects SET undone_at = ${d.now} WHERE key = $1 AND undone_at IS NULL`,
);

/** Gives a fork the effects of its source. */
export const copyEffects = statement(
  'effect_fork',
  `INSERT INTO @effects(session, key, run, at, undone_at, body)
   SELECT $1, key, run, at, undone_at, body FROM @effects WHERE session = $2 ORDER BY row_id`,
);

export function effectSupport({ db, cipher, state }: SqlContext): EffectSupport {
  return {
    save: (ref, key, effect) => db.write(() => save(ref, key, effect, cipher)),
    list: (scope, sessionId) => db.read(() => list(scope, sessionId, cipher)),
    async markUndone(ref, key) {
      await db.write(() => markUndone(ref, key));
      state.known.forget(ref.runId);
    },
  };
}

function* save(ref: RunRef, key: string, effect: Effect | null, cipher: Cipher): Plan<void> {
  const held = yield* openRun(ref);
  if (effect === null) {
    yield* run(deleteEffect, held.session, hashBytes(key));
    return;
  }
  const { tool, agent, input, output, at } = effect;
  const content = toJson(defined({ tool, agent, input, output }), 'an effect');
  const body = cipher.encrypt(JSON.stringify(content), effectPlace(held, key));
  yield* run(upsertEffect, held.session, hashBytes(key), held.id, Date.parse(at), body);
}

function* list(scope: Scope, sessionId: string, cipher: Cipher): Plan<readonly StoredEffect[]> {
  const session = yield* findSession(scope, sessionId);
  if (session === undefined) return [];
  const rows = yield* all(selectEffects, session.row_id);
  const shared = rows.length === 0 ? [] : yield* all(selectShared, session.row_id);
  const [owner, agent] = scopeKey(scope);
  const sharers = Map.groupBy(shared, (row) => hexOf(row.key));
  return rows.map((row) => {
    const key = hexOf(row.key);
    const content = openJson(row.body, effectPlace({ owner, agent }, key), cipher);
    return defined({
      ...(content as Pick<Effect, 'tool' | 'agent' | 'input' | 'output'>),
      key,
      at: iso(row.at),
      runId: uuidText(row.run),
      undoneAt: row.undone_at === null ? undefined : iso(row.undone_at),
      sharedWith: sharers.get(key)?.map(({ session_id: id }) => id) ?? [],
    });
  });
}

function* markUndone(ref: RunRef, key: string): Plan<void> {
  const held = yield* openRun(ref);
  yield* run(updateUndone, hashBytes(key));
  if (held.crashes > 0) yield* run(forgetCrashes, held.session);
}
