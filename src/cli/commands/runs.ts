import type { DeadRun } from '../../protocol/run.ts';
import { defineCommand, jsonOption } from '../command.ts';
import type { RunWithWorker } from '../source/agent-access.ts';
import { agentOption, agentsOptions, chosenAgents, withAgents } from '../source/open-agents.ts';
import { orNothing } from '../source/or-nothing.ts';
import { emptyList } from '../text/empty-list.ts';
import { oneLine } from '../text/safe.ts';
import { table } from '../text/table.ts';
import { when } from '../text/when.ts';

/** `waymark runs` */
export const runs = defineCommand({
  name: 'runs',
  summary: 'List open and failed runs',
  usage: '',
  about:
    'Open runs are turns with a waiting caller, and background runs. Failed runs are runs whose workers died too often.\nStates: running, queued (waits for a worker), stopping (an abort was requested), expired (its worker is gone; another\none takes over), failed. The worker is shown only with --file.',
  examples: ['runs', 'runs --agent writer --json', 'runs --url http://127.0.0.1:3000'],
  options: { ...agentOption, ...jsonOption, ...agentsOptions },
  async run({ options, terminal }) {
    await withAgents(options, terminal, async ({ agents }) => {
      const open: RunWithWorker[] = [];
      const failed: DeadRun[] = [];
      for (const agent of chosenAgents(agents, options.agent)) {
        open.push(...((await orNothing(agent.listRuns()))?.items ?? []));
        failed.push(...((await orNothing(agent.listDeadRuns()))?.items ?? []));
      }
      if (options.json) {
        const items = [
          ...open.map((run) => ({ ...run, state: stateOf(run) })),
          ...failed.map((run) => ({ ...run, state: 'failed' })),
        ];
        return terminal.print(JSON.stringify({ items }, null, 2));
      }
      if (open.length + failed.length === 0) {
        return terminal.note(emptyList('open or failed runs', options));
      }
      terminal.print(runTable(open, failed));
      if (failed.length > 0) {
        terminal.note(
          'To see why a run failed, use "waymark retry"; to start it again, "waymark retry <run>".',
        );
      }
    });
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
      `after ${attempts.length === 1 ? '1 attempt' : `${attempts.length} attempts`}`,
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
