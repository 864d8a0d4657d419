import { documentStatements } from '../content/write-documents.ts';
import type { Statement } from '../database/query.ts';
import { stateStatements } from '../history/plan-state.ts';
import { dropStatements } from '../retention/gc-queue.ts';
import { listHeadStatement } from '../snapshots/active-path.ts';
import { spendStatements } from '../spend.ts';
import { claimStatements } from './claim-idle.ts';
import { commitStatements } from './commit.ts';
import { commitGuards } from './commit-facts.ts';
import { deadStatements } from './dead-runs.ts';
import { endStatements } from './end-run.ts';
import { eventStatements } from './events.ts';
import { inboxStatements } from './inbox.ts';
import { requestStatements } from './requests.ts';

/** The statements that guarded writes are made of. A write with any other statement is sent one by one. */
export const guardedStatements: readonly Statement[] = [
  ...claimStatements,
  ...commitGuards,
  ...commitStatements,
  ...stateStatements,
  ...documentStatements,
  ...dropStatements,
  listHeadStatement,
  ...spendStatements,
  ...deadStatements,
  ...endStatements,
  ...eventStatements,
  ...inboxStatements,
  ...requestStatements,
];
