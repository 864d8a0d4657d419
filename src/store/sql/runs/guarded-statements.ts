import { dropStatements } from '../content/gc-queue.ts';
import { documentStatements } from '../content/write-documents.ts';
import type { Statement } from '../database/query.ts';
import { stateStatements } from '../history/plan-state.ts';
import { memoryStatements } from '../memory.ts';
import { listHead } from '../snapshots/active-path.ts';
import { spendStatements } from '../spend.ts';
import { claimStatements } from './claim-idle.ts';
import { commitStatements } from './commit.ts';
import { commitGuards } from './commit-facts.ts';
import { bury } from './dead-runs.ts';
import { endStatements } from './end-run.ts';
import { eventStatements } from './events.ts';
import { inboxStatements } from './inbox.ts';
import { requestStatements } from './requests.ts';
import { updateHeartbeat } from './run-writes.ts';

/** The statements of plain turns. */
export const frequentStatements: readonly Statement[] = [
  ...commitGuards.frequent,
  ...stateStatements.frequent,
  ...commitStatements.frequent,
  ...endStatements.frequent,
  ...claimStatements.frequent,
];

/** The statements that guarded writes are made of, the frequent ones first. A write with any other statement is sent one by one. */
export const guardedStatements: readonly Statement[] = [
  ...frequentStatements,
  ...commitGuards.others,
  ...stateStatements.others,
  ...commitStatements.others,
  ...endStatements.others,
  ...claimStatements.others,
  ...documentStatements,
  ...dropStatements,
  listHead,
  ...spendStatements,
  ...memoryStatements,
  bury,
  ...eventStatements,
  ...inboxStatements,
  ...requestStatements,
  updateHeartbeat,
];
