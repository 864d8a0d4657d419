import { WaymarkError } from '../../core/error.ts';
import type { DeadRun } from '../../protocol/run.ts';
import type { RunWithWorker } from '../source/agent-access.ts';
import { findSnapshot, orNothing } from '../source/find.ts';
import { agentsCommand } from '../source/open-agents.ts';
import { count, oneLine, table, when } from '../text/format.ts';
import { emptyList } from '../text/session-text.ts';

export const runs = agentsCommand({
  name: 'runs',
  summary: 'List open and failed runs',
  about:
    'Open runs are turns with a waiting caller, and background runs. Failed runs are runs whose workers died too often.\nStates: running, queued (waits for a worker), stopping (an abort was requested), expired (its worker is gone; another\none takes over), failed. The worker is shown only with --file.',
  examples: ['runs', 'runs --agent writer --json', 'runs --url http://127.0.0.1:3000'],
  async run({ options, agents }) {
    const items: (OpenRun | FailedRun)[] = [];
    const failed: FailedRun[] = [];
    for (const agent of agents) {
      const runs = await orNothing(agent.listRuns());
      for (const run of runs?.items ?? []) items.push({ ...run, state: stateOf(run) });
      const deadRuns = await orNothing(agent.listDeadRuns());
      for (const run of deadRuns?.items ?? []) failed.push({ ...run, state: 'failed' });
    }
    items.push(...failed);
    const json = { items };
    if (items.length === 0) return { json, note: emptyList('open or failed runs', options) };
    const hint =
      'To see why a run failed, use "waymark retry"; to start it again, "waymark retry <run>".';
    return { json, text: runTable(items), note: failed.length > 0 ? hint : undefined };
  },
});

type OpenRun = RunWithWorker & { readonly state: ReturnType<typeof stateOf> };
type FailedRun = DeadRun & { readonly state: 'failed' };

function runTable(items: readonly (OpenRun | FailedRun)[]): string {
  return table([
    ['RUN', 'STATE', 'AGENT', 'SESSION', 'SINCE', 'MODE', 'WORKER'],
    ...items.map((run) => {
      const { snapshotId, state, agent, sessionId } = run;
      const [since, mode, worker] =
        run.state === 'failed'
          ? [run.since, `after ${count(run.attempts.length, 'attempt')}`, '-']
          : [run.createdAt, modeOf(run), workerOf(run)];
      return [snapshotId, state, agent, oneLine(sessionId, 64), when(since), mode, worker];
    }),
  ]);
}

function modeOf({ mode, attempt }: RunWithWorker): string {
  return attempt > 1 ? `${mode}, attempt ${attempt}` : mode;
}

function stateOf(run: RunWithWorker): 'stopping' | 'queued' | 'expired' | 'running' {
  if (run.stopping) return 'stopping';
  if (isQueued(run)) return 'queued';
  return run.expired ? 'expired' : 'running';
}

// A queued run has the name of its queue, which ends with a slash; a worker adds its own.
function isQueued({ worker }: RunWithWorker): boolean {
  return worker?.endsWith('/') === true;
}

function workerOf(run: RunWithWorker): string {
  return run.worker === undefined || isQueued(run) ? '-' : oneLine(run.worker, 48);
}

export const abort = agentsCommand({
  name: 'abort',
  summary: 'Stop a turn or a background run',
  usage: '<run>',
  destructive: true,
  about:
    'A background run is marked as "aborted" immediately. A turn with a waiting caller gets a stop request: it stays\n"pending" until it has stopped, and keeps its partial answer. A run that has already ended does not change.',
  examples: ['abort 019b2f6e-…', 'abort 019b2f6e-… --url http://127.0.0.1:3000'],
  async run({ args: [given = ''], agents }) {
    const { agent, snapshot } = await findSnapshot(agents, given);
    const { snapshotId } = snapshot;
    const status = await agent.abort(snapshotId);
    if (status === undefined) {
      throw new WaymarkError('NOT_FOUND', `There is no run "${snapshotId}".`);
    }
    const hasEnded = status === snapshot.status && status !== 'pending';
    const text = status === 'pending' ? 'pending: the turn was asked to stop' : status;
    return {
      receipt: { snapshotId, status },
      text: hasEnded ? `already ended: ${status}` : text,
    };
  },
});

export const retry = agentsCommand({
  name: 'retry',
  summary: 'Retry a failed run, or list failed runs',
  usage: '[run]',
  about:
    'A run whose process dies too often ends as "failed". Fix the cause, then retry: the remaining inputs start as a new run\nof the same session. Without a run, lists the failed runs with the error of each attempt.',
  examples: ['retry --url http://127.0.0.1:3000', 'retry 019b2f6e-… --url http://127.0.0.1:3000'],
  async run({ args: [given], options, agents }) {
    if (given !== undefined) {
      const { agent, snapshot } = await findSnapshot(agents, given);
      const started = await agent.retryRun(snapshot.snapshotId);
      return { receipt: started, text: `Started as run ${started.snapshotId}.` };
    }
    const pages = await Promise.all(agents.map((agent) => orNothing(agent.listDeadRuns())));
    const items = pages.flatMap((page) => page?.items ?? []);
    items.sort((a, b) => a.since.localeCompare(b.since));
    const json = { items };
    if (items.length > 0) return { json, text: deadRunTable(items) };
    return { json, note: emptyList('failed runs', options) };
  },
});

/** One line per attempt, with its error. */
function deadRunTable(items: readonly DeadRun[]): string {
  return table([
    ['RUN', 'AGENT', 'SINCE', 'ATTEMPT', 'ERROR'],
    ...items.flatMap(({ snapshotId, agent, since, attempts }) =>
      attempts.map(({ attempt, error }, n) => [
        ...(n === 0 ? [snapshotId, agent, when(since)] : ['', '', '']),
        String(attempt),
        oneLine(error, 120),
      ]),
    ),
  ]);
}
