import * as v from 'valibot';
import type { Agent } from '../../agent/contract/agent.ts';
import { invalid, isWaymarkError, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { parseShape } from '../../protocol/parse.ts';
import { type Input, input } from '../../protocol/turn.ts';
import { type Queue, scheduleQueue } from './queue.ts';

/** A cron schedule that starts runs of an agent. */
export interface RunSchedule {
  /** Identifies the schedule; setting the same key replaces it. */
  readonly key: string;
  /** Five fields, to the minute: `0 7 * * 1-5`. */
  readonly cron: string;
  /** @default 'UTC' */
  readonly timeZone?: string;
  /** The name of the agent to run. */
  readonly agent: string;
  /** The input of each run. */
  readonly input: Input;
  /** The owner of the sessions. */
  readonly owner?: string;
  /** The session that all its runs continue. @default a new session for each run */
  readonly sessionId?: string;
}

const scheduled = v.object({
  agent: v.string(),
  input,
  owner: v.optional(v.string()),
  sessionId: v.optional(v.string()),
});

export function createSchedules(
  queue: Queue,
  agentOf: (name: string) => Agent | undefined,
  onError: (error: unknown) => void,
) {
  const list = async (): Promise<readonly RunSchedule[]> => {
    const boss = await queue.open();
    const found = await boss.getSchedules(scheduleQueue);
    return found.map(({ key, cron, timezone: timeZone, data }) => {
      const { owner, sessionId, ...run } = parseShape(scheduled, data, 'schedule');
      return { ...run, ...defined({ owner, sessionId }), key, cron, timeZone };
    });
  };
  /** Uses the job's id as the session id, so that a second attempt finds the run of the first. */
  const beginOne = async (jobId: string, data: object): Promise<boolean> => {
    const { agent: name, sessionId = jobId, owner, ...due } = parseShape(scheduled, data, 'job');
    const agent = agentOf(name);
    if (agent === undefined) return false;
    const whose = defined({ owner });
    const isOwnSession = sessionId === jobId;
    if (isOwnSession && (await agent.getSession(sessionId, whose)) !== undefined) return true;
    try {
      await agent.run({ ...due.input, detach: true }, { sessionId, ...whose });
    } catch (error) {
      // The session is still busy with the previous run: skip this one.
      if (!isWaymarkError(error) || error.status !== 'ABORTED') throw error;
      onError(error);
    }
    return true;
  };

  return {
    async set({ key, cron, timeZone = 'UTC', ...run }: RunSchedule): Promise<void> {
      const data = parseShape(scheduled, run, 'schedule');
      const boss = await queue.open();
      try {
        await boss.schedule(scheduleQueue, cron, data, { key, tz: timeZone });
      } catch (cause) {
        // Database errors have a code; any other error is about the arguments.
        if (!(cause instanceof Error) || 'code' in cause) throw cause;
        throw invalid(
          `The schedule "${key}" cannot be set: ${cause.message}. \`cron\` takes five fields such as "0 7 * * 1-5", \`timeZone\` a name such as "Europe/Lisbon", \`key\` letters, digits, "-", "_" and ".".`,
          { cause },
        );
      }
    },
    async remove(key: string): Promise<void> {
      const boss = await queue.open();
      await boss.unschedule(scheduleQueue, key);
    },
    list,
    async runNow(key: string): Promise<void> {
      const found = (await list()).find((each) => each.key === key);
      if (found === undefined) throw new WaymarkError('NOT_FOUND', `No schedule "${key}".`);
      const { cron: _, timeZone: __, key: ___, ...data } = found;
      const boss = await queue.open();
      await boss.send(scheduleQueue, data);
    },
    /** Starts the runs that are due. */
    async begin(): Promise<void> {
      const boss = await queue.open({ supervise: true });
      const jobs = await boss.fetch<object>(scheduleQueue, { batchSize: 10 });
      for (const job of jobs) {
        try {
          const isBegun = await beginOne(job.id, job.data);
          if (isBegun) await boss.complete(scheduleQueue, job);
          else await boss.fail(scheduleQueue, job, { waymark: 'not-mine' });
        } catch (error) {
          onError(error);
          await boss.fail(scheduleQueue, job, { waymark: 'error' });
        }
      }
    },
  };
}
