import type { App } from '../../app.ts';
import { jsonOption, openingCommand, option } from '../command.ts';
import { closeApp, loadApp, showErrors } from '../source/load-app.ts';
import { agentsOptions } from '../source/open-agents.ts';
import { oneLine, table } from '../text/format.ts';

const opening = { file: agentsOptions.file, ...jsonOption };
const options = { run: option('key', 'Start a run of this schedule now') };

export const schedules = openingCommand<typeof options, typeof opening, { readonly app: App }>(
  {
    name: 'schedules',
    summary: 'List the schedules of the app with their next times, or start a run now',
    about:
      'The times are in UTC. LAST is the session of the last run, or why it was not started. With --run, a run of the schedule\nis started besides its times; a process that works on background runs executes it.',
    examples: ['schedules', 'schedules --file src/agents.ts --json', 'schedules --run digest'],
    options,
    async run({ options: { run: started }, app }) {
      if (started !== undefined) {
        const { id, sessionId } = await app.runSchedule(started);
        const text = `Started run ${id} in session ${sessionId}.`;
        return { receipt: { snapshotId: id, sessionId }, text };
      }
      const items = await app.listSchedules();
      if (items.length === 0) return { json: { items }, note: 'The app has no schedules.' };
      const rows = items.map(({ key, agent, cron, timeZone, every, nextAt, last }) => [
        key,
        agent,
        cron === undefined ? `every ${every} ms` : [cron, timeZone].filter(Boolean).join(' '),
        nextAt ?? 'never',
        oneLine(last?.error ?? last?.sessionId ?? '-', 80),
      ]);
      return { json: { items }, text: table([['KEY', 'AGENT', 'TIMES', 'NEXT', 'LAST'], ...rows]) };
    },
  },
  opening,
  async ({ options: given, terminal }, run) => {
    const { app } = await loadApp(given.file, terminal.cwd, 'reading');
    showErrors(app, terminal.note, given.debug === true);
    try {
      await run({ app });
    } finally {
      await closeApp(app);
    }
  },
);
