import * as v from 'valibot';
import type { Agent } from '../../agent/agent.ts';
import { noDeadRun } from '../../agent/dispatcher.ts';
import { WaymarkError } from '../../core/error.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { RetryResult } from '../../protocol/requests.ts';
import type { DeadRun } from '../../protocol/run.ts';
import { input } from '../../protocol/turn.ts';
import type { Scope } from '../../session/store.ts';
import type { ClaimedRun } from '../engine.ts';
import type { Crash } from './crashes.ts';
import { deadQueue, type Queue } from './queue.ts';

const letter = v.object({
  agent: v.string(),
  sessionId: v.string(),
  owner: v.optional(v.string()),
  attempts: v.array(v.object({ attempt: v.number(), error: v.string() })),
});

/** A run that was given up because it cost too many workers. */
export interface DeadLetter extends v.InferOutput<typeof letter> {
  readonly runId: string;
  readonly since: string;
}

export interface DeadLetters {
  add(claimed: ClaimedRun, crashes: readonly Crash[]): Promise<void>;
  /** Oldest first. Those whose snapshot has been erased are thrown away. */
  list(): Promise<readonly DeadLetter[]>;
  /** Begins again with what the run had not done, as a new run of its session. With a scope, only a run of that scope is known. */
  retry(runId: string, of?: Scope): Promise<RetryResult>;
}

/** A letter as those see it whose run it was. */
export function toDeadRun({ runId, agent, sessionId, attempts, since }: DeadLetter): DeadRun {
  return { snapshotId: runId, sessionId, agent, attempts, since };
}

/** Whether it is a run of that agent and owner. */
export function isOf({ agent, owner }: DeadLetter, scope: Scope): boolean {
  return agent === scope.agent && owner === scope.owner;
}

function ofOwner(owner: string | undefined): { readonly owner?: string } {
  return owner === undefined ? {} : { owner };
}

/** What is left of a run that was given up, in the error of its snapshot. */
const remains = v.object({ inputs: v.array(input) });

export function createDeadLetters(
  queue: Queue,
  agentOf: (name: string) => Agent | undefined,
): DeadLetters {
  const find = async (runId: string, of: Scope | undefined): Promise<DeadLetter> => {
    const found = (await list()).find((each) => each.runId === runId);
    if (found !== undefined && (of === undefined || isOf(found, of))) return found;
    throw noDeadRun(runId);
  };
  const list = async (): Promise<readonly DeadLetter[]> => {
    const boss = await queue.open();
    const jobs = await boss.findJobs<object>(deadQueue, { queued: true });
    const letters = jobs
      .toSorted((a, b) => a.createdOn.getTime() - b.createdOn.getTime())
      .map(({ id, data, createdOn }) => ({
        ...parseShape(letter, data, 'dead letter'),
        runId: id,
        since: createdOn.toISOString(),
      }));
    const areLeft = await Promise.all(letters.map(isLeft));
    return letters.filter((_, at) => areLeft[at]);
  };
  // A letter names a session and tells what went wrong there: it goes with the snapshot, when that is erased or pruned.
  const isLeft = async ({ agent, runId, owner }: DeadLetter): Promise<boolean> => {
    const snapshot = await agentOf(agent)?.getSnapshot({ snapshotId: runId }, ofOwner(owner));
    if (snapshot !== undefined || agentOf(agent) === undefined) return true;
    const boss = await queue.open();
    await boss.deleteJob(deadQueue, runId);
    return false;
  };

  return {
    async add({ run }, crashes) {
      const { agent, owner } = run.scope;
      const boss = await queue.open();
      const data = {
        agent,
        sessionId: run.sessionId,
        ...(owner !== undefined && { owner }),
        attempts: crashes.map(({ attempt, error }) => ({ attempt, error })),
      };
      await boss.send(deadQueue, data, { id: run.runId });
    },
    list,
    async retry(runId, of) {
      const { agent: name, sessionId, owner } = await find(runId, of);
      const agent = agentOf(name);
      if (agent === undefined) {
        throw new WaymarkError('FAILED_PRECONDITION', `This app has no agent "${name}".`);
      }
      const whose = ofOwner(owner);
      const snapshot = await agent.getSnapshot({ snapshotId: runId }, whose);
      if (snapshot?.error?.details === undefined) {
        throw new WaymarkError(
          'FAILED_PRECONDITION',
          `The run "${runId}" has not ended yet. Try again when it has.`,
        );
      }
      const { inputs } = parseShape(remains, snapshot.error.details, 'details');
      const connection = agent.streamBidi({ sessionId, ...whose });
      for (const each of inputs.slice(0, -1)) await connection.send(each);
      const { snapshotId = '' } = await connection.detach(inputs.at(-1));
      const boss = await queue.open();
      await boss.deleteJob(deadQueue, runId);
      return { snapshotId, sessionId };
    },
  };
}
