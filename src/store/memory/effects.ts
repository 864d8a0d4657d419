import { defined, toJson } from '../../core/json/json.ts';
import type { EffectSupport, Scope } from '../contract/store.ts';
import { noCrashes } from './claim.ts';
import { iso } from './reading.ts';
import {
  currentRun,
  type EffectRow,
  findSession,
  inScope,
  type SessionRow,
  type Tables,
} from './tables.ts';

export function effectSupport(tables: Tables): EffectSupport {
  return {
    async save(ref, key, effect) {
      const { session, id: runId } = currentRun(tables, ref);
      if (effect === null) {
        if (session.effects?.has(key)) putEffect(session, key, undefined);
        return;
      }
      const { tool, agent, input, output, at } = effect;
      const row = defined({ key, runId, tool, agent, input, output, at });
      toJson(row, 'an effect');
      putEffect(session, key, structuredClone(row));
    },
    async list(scope, sessionId) {
      const session = findSession(tables, scope, sessionId);
      const rows = [...(session?.effects?.values() ?? [])];
      const others = rows.length === 0 ? [] : sharing(tables, scope);
      return rows
        .map((row) => {
          const sharedWith = others.filter(
            (each) => each !== session && each.effects?.has(row.key),
          );
          return { ...structuredClone(row), sharedWith: sharedWith.map(({ id }) => id).sort() };
        })
        .sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)));
    },
    async markUndone(ref, key) {
      const run = currentRun(tables, ref);
      const { scope, effects } = run.session;
      if (!effects?.has(key)) return;
      run.crashes = noCrashes;
      const undoneAt = iso(tables.clock.now());
      for (const { id } of sharing(tables, scope)) {
        const session = findSession(tables, scope, id);
        const row = session?.effects?.get(key);
        if (session === undefined || row === undefined || row.undoneAt !== undefined) continue;
        putEffect(session, key, { ...row, undoneAt });
      }
    },
  };
}

/** The sessions that have effects. */
function sharing(tables: Tables, scope: Scope): readonly SessionRow[] {
  return [...tables.sessions.values()].filter(
    (session) => session.effects !== undefined && inScope(session, scope),
  );
}

function putEffect(session: SessionRow, key: string, row: EffectRow | undefined): void {
  const effects = new Map(session.effects);
  if (row === undefined) effects.delete(key);
  else effects.set(key, row);
  session.effects = effects;
}
