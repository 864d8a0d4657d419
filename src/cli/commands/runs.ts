import { WaymarkError } from '../../core/error.ts';
import type { DeadRun } from '../../protocol/run.ts';
import type { RunWithWorker } from '../source/agent-access.ts';
import { findSnapshot, orNothing } from '../source/find.ts';
import { agentsCommand } from '../source/open-agents.ts';
import { count, oneLine, table, when } from '../text/format.ts';
import { emptyList } from '../text/session-text.ts';

/** `waymark runs` */
export const runs = agentsCommand({
  name: 'runs',
  summary: 'List open and failed runs',
  about:
    'Open runs are turns with a waiting caller, and background runs. Failed runs are runs whose workers died too often.\nStates: running, queued (waits for a worker), stopping (an abort was requested), expired (its worker is gone; another\none takes over), failed. The worker is shown only with --file.',
  examples: ['runs', 'runs --agent writer --json', 'runs --url http://127.0.0.1:3000'],
  async run({ options, agents }) {
    const open: RunWithWorker[] = [];
    const failed: DeadRun[] = [];
    for (const agent of agents) {
      open.push(...((await orNothing(agent.listRuns()))?.items ?? []));
      failed.push(...((await orNothing(agent.listDeadRuns()))?.items ?? []));
    }
    const items = [
      ...open.map((run) => ({ ...run, state: stateOf(run) })),
      ...failed.map((run) => ({ ...run, state: 'failed' })),
    ];
    const json = { items };
    if (items.length === 0) return { json, note: emptyList('open or failed runs', options) };
    const hint =
      'To see why a run failed, use "waymark retry"; to start it again, "waymark retry <run>".';
    return { json, text: runTable(open, failed), note: failed.length > 0 ? hint : undefined };
  },
});

function runTable(open: readonly RunWithWorker[], failed: readonly DeadRun[]): string {
  return table([
    ['RUN', 'STATE', 'AGENT', 'SESSION', 'SINCE', 'MODE', 'WORKER'],
    ...open.map((run) => [
      run.snapshotId,
      stateOf(run),
      run.agent,
      oneLine(run.sessionId, 64),
      when(run.createdAt),
      [run.mode, run.attempt > 1 ? `attempt ${run.attempt}` : ''].filter(Boolean).join(', '),
      workerOf(run),
    ]),
    ...failed.map(({ snapshotId, agent, sessionId, since, attempts }) => [
      snapshotId,
      'failed',
      agent,
      oneLine(sessionId, 64),
      when(since),
      `after ${count(attempts.length, 'attempt')}`,
      '-',
    ]),
  ]);
}

function stateOf(run: RunWithWorker): string {
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

/** `waymark abort` */
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

/** `waymark retry` */
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
    const chosen = agents;
    const pages = await Promise.all(chosen.map((agent) => agent.listDeadRuns()));
    const items = pages.flatMap((page) => page.items);
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
