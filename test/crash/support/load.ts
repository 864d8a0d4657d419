import type { App } from '../../../src/app.ts';
import { isWaymarkError } from '../../../src/core/error.ts';
import { systemClock } from '../../../src/core/time.ts';
import type { Journal } from './journal.ts';

/** What one process has done under load. */
export interface LoadResult {
  /** How many turns it was told are saved, by session. */
  readonly saved: Readonly<Record<string, number>>;
  /** How often a session was busy with a turn of another process. */
  readonly busy: number;
  /** Everything else that went wrong. */
  readonly failures: readonly string[];
}

/** The sessions that all processes share: those that wait for each other, and those that refuse. */
const shared = { chat: ['w0', 'w1'], strict: ['r0', 'r1'] };

/** Runs this many turns on each of several sessions concurrently: own sessions and shared ones. */
export async function runLoad(app: App, journal: Journal, turns: number): Promise<LoadResult> {
  const saved: Record<string, number> = {};
  const failures: string[] = [];
  let busy = 0;
  const turn = async (agentName: string, sessionId: string, text: string): Promise<void> => {
    for (;;) {
      try {
        const output = await app.agent(agentName).runText(text, { sessionId, throwOnError: false });
        const { error } = output;
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
  // Takes several times as long as a claim lasts, while all processes look for expired ones.
  const long = turnOf(app, `long ${process.pid}`);
  await Promise.all([...own, ...common, long.then((problem) => problem && failures.push(problem))]);
  journal.write({ kind: 'recorded', key: `load of ${process.pid}` });
  return { saved, busy, failures };
}

async function turnOf(app: App, sessionId: string): Promise<string | undefined> {
  const options = { sessionId, accept: true };
  const output = await app
    .agent('chat')
    .runText(`${sessionId} hold`, { ...options, throwOnError: false });
  return output.error && `${sessionId}: ${output.error.message}`;
}
