import type { StateContext } from '../sql/history/state-rows.ts';
import type { TurnSteps } from '../sql/sql-context.ts';
import type { PostgresDatabase } from './database.ts';
import { isConflict } from './errors.ts';
import { quickAppend } from './quick-append.ts';
import { quickClaim } from './quick-claim.ts';
import { quickCommit } from './quick-commit.ts';
import { createQuickSend } from './quick-send.ts';

/** What every turn does, each in one round trip. */
export function quickSteps(db: PostgresDatabase): (context: StateContext) => TurnSteps {
  return (context) => {
    const send = createQuickSend(db, context);
    // A step that met another transaction is left to the long way, which waits and tries again.
    const usual = async <Result>(step: () => Promise<Result>): Promise<Result | undefined> => {
      // The values of a step are encrypted before it is sent, which takes the secret that the open store keeps.
      await db.open();
      try {
        return await step();
      } catch (error) {
        if (isConflict(error)) return undefined;
        throw error;
      }
    };
    return {
      claim: (scope, request) => usual(() => quickClaim(db, scope, request, context)),
      commit: (ref, write) => usual(() => quickCommit(db, ref, write, context)),
      append: (group) => usual(() => quickAppend(db, group, context)),
      sendAway: (ref, request, away) => usual(() => send({ ref, request, away })),
    };
  };
}
