import type { JobInsert } from 'pg-boss';
import * as v from 'valibot';
import type { DispatchedRun } from '../../agent/contract/dispatcher.ts';
import { defined } from '../../core/json/json.ts';
import type { Transaction } from '../../store/contract/store.ts';
import { type Queue, runQueue } from './queue.ts';

/** The payload of a job: which run to execute. Only ids; everything else is in the store. */
export const runJob = v.object({
  agent: v.string(),
  sessionId: v.string(),
  owner: v.optional(v.string()),
  version: v.optional(v.string()),
});
export type RunJob = v.InferOutput<typeof runJob>;

/** The job group of an agent version; a worker can ignore whole groups when it fetches jobs. */
export function groupOf({ agent, version }: Pick<RunJob, 'agent' | 'version'>): string {
  return version === undefined ? agent : `${agent}@${version}`;
}

/** Inserts the job of a run within a transaction. Jobs of one transaction are inserted in one batch. */
export function createJobInsert(
  queue: Queue,
): (transaction: Transaction, run: DispatchedRun) => Promise<void> {
  const batches = new WeakMap<
    Transaction,
    { readonly jobs: JobInsert[]; readonly done: Promise<void> }
  >();

  const insert = async (transaction: Transaction, jobs: JobInsert[]): Promise<void> => {
    const boss = await queue.open();
    // Later jobs go into the next batch.
    batches.delete(transaction);
    await boss.insert(runQueue, jobs, {
      db: { executeSql: (text, values = []) => transaction.query(text, values) },
    });
  };

  return (transaction, run) => {
    const known = batches.get(transaction);
    if (known !== undefined) {
      known.jobs.push(jobOf(run));
      return known.done;
    }
    const jobs = [jobOf(run)];
    const done = insert(transaction, jobs);
    batches.set(transaction, { jobs, done });
    return done;
  };
}

function jobOf({ scope, sessionId, version, runId, queue }: DispatchedRun): JobInsert {
  const { priority, startAfter: after } = queue ?? {};
  const { agent, owner } = scope;
  const data: RunJob = defined({ agent, owner, sessionId, version });
  // Seconds from now by the database's clock, or a moment.
  const startAfter = typeof after === 'number' ? after / 1000 : after;
  return { id: runId, data, group: { id: groupOf(data) }, ...defined({ priority, startAfter }) };
}
