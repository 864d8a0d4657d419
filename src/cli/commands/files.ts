import { resolve } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import type { FileInfo } from '../../protocol/requests.ts';
import { allPages, findSnapshot } from '../source/find.ts';
import { agentsCommand } from '../source/open-agents.ts';
import { oneLine, table } from '../text/format.ts';

export const files = agentsCommand({
  name: 'files',
  summary: 'List the files of the workspace as a snapshot has them',
  usage: '<snapshot>',
  about: 'Size, `x` for a file that can be executed, and path. To read the files, use checkout.',
  examples: ['files 019b2f6e-…', 'files 019b2f6e-… --json'],
  async run({ args: [given = ''], agents }) {
    const { agent, snapshot } = await findSnapshot(agents, given);
    const items = await allPages((options) => agent.listFiles(snapshot.snapshotId, options));
    const json = { items };
    if (items.length === 0) return { json, note: 'This snapshot has no files.' };
    return { json, text: table(items.map(row)) };
  },
});

function row({ path, size, executable, target }: FileInfo): readonly string[] {
  const link = target === undefined ? '' : ` -> ${oneLine(target)}`;
  return [String(size), executable === true ? 'x' : '', `${oneLine(path, 1_000)}${link}`];
}

export const checkout = agentsCommand({
  name: 'checkout',
  summary: 'Write the files of a snapshot into a new or empty folder',
  usage: '<snapshot> <folder>',
  about: 'Neither the session nor the workspace changes. To restore both, use restore.',
  examples: ['checkout 019b2f6e-… ./before'],
  async run({ args: [given = '', folder = ''], terminal, agents }) {
    const { agent, snapshot } = await findSnapshot(agents, given);
    if (agent.checkout === undefined) {
      throw new WaymarkError(
        'UNIMPLEMENTED',
        'checkout works with --file only. To read one file from a server, use openFile of the client.',
      );
    }
    const { skipped } = await agent.checkout(snapshot.snapshotId, resolve(terminal.cwd, folder));
    const left = skipped.map(({ path, reason }) => `Left out: ${oneLine(path, 1_000)} (${reason})`);
    return {
      json: { skipped },
      text: [`Wrote the files of ${snapshot.snapshotId} to ${folder}.`, ...left].join('\n'),
    };
  },
});
