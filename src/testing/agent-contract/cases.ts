import type { ContractCase } from './case.ts';
import { callerToolCases } from './cases/caller-tools.ts';
import { clientCases } from './cases/client.ts';
import { customCases } from './cases/custom.ts';
import { detachedCases } from './cases/detached.ts';
import { editCases } from './cases/edit.ts';
import { ifHeadCases } from './cases/if-head.ts';
import { interruptCases } from './cases/interrupts.ts';
import { requestCases } from './cases/requests.ts';
import { snapshotCases } from './cases/snapshots.ts';
import { startingCases } from './cases/starting.ts';
import { stoppingCases } from './cases/stopping.ts';
import { timelineCases } from './cases/timeline.ts';
import { toolRecordCases } from './cases/tool-records.ts';
import { turnCases } from './cases/turns.ts';

/** All cases of the agent contract. */
export const contractCases: readonly ContractCase[] = [
  ...turnCases,
  ...startingCases,
  ...stoppingCases,
  ...requestCases,
  ...snapshotCases,
  ...customCases,
  ...interruptCases,
  ...toolRecordCases,
  ...callerToolCases,
  ...timelineCases,
  ...editCases,
  ...ifHeadCases,
  ...detachedCases,
  ...clientCases,
];
