import type { App } from '../../../src/app.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { isWaymarkError } from '../../../src/core/error.ts';
import type { Journal } from './journal.ts';

/** What one process has done under load. */
export interface LoadResult {
  /** How many turns it was told are saved, by session. */
  readonly saved: Readonly<Record<string, number>>;
  /** How often a session was being worked on by somebody else. */
  readonly busy: number;
  /** How often a turn was told that its claim had expired and the session is somebody else's; it was then taken again. */
  readonly displaced: number;
  /** The longest time, in milliseconds, for which the process stood still. */
  readonly stoodStill: number;
  /** Everything else that went wrong. */
  readonly failures: readonly string[];
}

/** The sessions that all processes share: those that wait for each other, and those that refuse. */
const shared = { chat: ['w0', 'w1'], strict: ['r0', 'r1'] };

/** Takes so many turns on each of several sessions at once, some of its own and some of everybody. */
export async function runLoad(app: App, journal: Journal, turns: number): Promise<LoadResult> {
  const saved: Record<string, number> = {};
  const failures: string[] = [];
  const stillness = watchStillness();
  let busy = 0;
  let displaced = 0;
  const turn = async (agentName: string, sessionId: string, text: string): Promise<void> => {
    for (;;) {
      try {
        const output = await app.agent(agentName).runText(text, { sessionId });
        const { error } = output;
        if (error?.status === 'ABORTED' && isShared(sessionId)) {
          displaced++;
          continue;
        }
        if (error !== undefined) failures.push(`${text}: ${error.message}`);
        else saved[sessionId] = (saved[sessionId] ?? 0) + 1;
        return;
      } catch (error) {
        if (!isWaymarkError(error) || error.status !== 'ABORTED') {
          failures.push(`${text}: ${error}`);
          return;
        }
        busy++;
        await systemClock.sleep(5);
      }
    }
  };
  const lane = async (agentName: string, sessionId: string): Promise<void> => {
    for (let no = 0; no < turns; no++) {
      await turn(agentName, sessionId, `${process.pid} ${sessionId} ${no} use ${no % 2}`);
    }
  };
  const own = [0, 1, 2, 3].map((no) => lane('chat', `own ${process.pid} ${no}`));
  const common = Object.entries(shared).flatMap(([agent, ids]) => ids.map((id) => lane(agent, id)));
  // Takes several times as long as a claim lasts, while everybody looks for expired ones.
  const long = turnOf(app, `long ${process.pid}`);
  await Promise.all([...own, ...common, long.then((problem) => problem && failures.push(problem))]);
  journal.write({ kind: 'recorded', key: `load of ${process.pid}` });
  return { saved, busy, displaced, stoodStill: stillness(), failures };
}

function isShared(sessionId: string): boolean {
  return Object.values(shared).some((ids) => ids.includes(sessionId));
}

/** Notes how long the process stands still; gives the longest time. */
function watchStillness(): () => number {
  const often = 20;
  let longest = 0;
  let before = systemClock.now();
  const stop = systemClock.every(often, () => {
    const now = systemClock.now();
    longest = Math.max(longest, now - before - often);
    before = now;
  });
  return () => {
    stop();
    return longest;
  };
}

async function turnOf(app: App, sessionId: string): Promise<string | undefined> {
  const options = { sessionId, accept: true };
  const output = await app.agent('chat').runText(`${sessionId} take 3000`, options);
  return output.error && `${sessionId}: ${output.error.message}`;
}
