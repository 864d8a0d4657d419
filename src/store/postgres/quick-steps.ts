import type { StateContext } from '../sql/history/state-rows.ts';
import type { TurnSteps } from '../sql/sql-store.ts';
import type { PostgresDatabase } from './database.ts';
import { isConflict } from './errors.ts';
import { quickAppend } from './quick-append.ts';
import { quickClaim } from './quick-claim.ts';
import { createQuickCommit } from './quick-commit.ts';
import { createQuickSend } from './quick-send.ts';
import { quickTake } from './quick-take.ts';

/** What every turn does, each in one round trip. */
export function quickSteps(db: PostgresDatabase): (context: StateContext) => TurnSteps {
  // Runs that have had events; a commit of one that has not is a shorter statement.
  const journaled = new Set<string>();
  return (context) => {
    const quickCommit = createQuickCommit(db, context);
    const send = createQuickSend(db, context.vault);
    return {
      claim: (scope, request) => usual(quickClaim(db, scope, request, context.vault)),
      async commit(ref, write) {
        const hasJournal = journaled.has(ref.runId);
        const result = await usual(quickCommit(ref, write, { hasJournal }));
        if (write.end) journaled.delete(ref.runId);
        return result;
      },
      async append(ref, events) {
        journaled.add(ref.runId);
        return (await usual(quickAppend(db, ref, events, context.vault))) === true;
      },
      sendAway: (ref, request, away) => usual(send({ ref, request, away })),
      takeOver: (request) => usual(quickTake(db, request)),
    };
  };
}

// Whoever met another transaction goes the long way, which waits and tries again.
async function usual<Result>(step: Promise<Result>): Promise<Result | undefined> {
  try {
    return await step;
  } catch (error) {
    if (isConflict(error)) return undefined;
    throw error;
  }
}
