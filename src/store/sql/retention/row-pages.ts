import { checkForward } from '../database/check-forward.ts';
import type { Database } from '../database/database.ts';
import type { Plan } from '../database/query.ts';

/** Numbers of rows in order, a page at a time, so that what is written meanwhile is not waited for. */
export async function* pagesOf(
  db: Database,
  page: (after: number) => Plan<readonly number[]>,
  from = 0,
): AsyncGenerator<readonly number[], void, undefined> {
  for (let after = from; ; ) {
    const at = after;
    const found = await db.read(() => page(at));
    const last = found.at(-1);
    if (last === undefined) return;
    checkForward([last], [after]);
    yield found;
    after = last;
  }
}
