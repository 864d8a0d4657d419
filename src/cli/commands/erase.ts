import { WaymarkError } from '../../core/error.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { agentsOf, openStore, scopeOptions, storeOptions } from '../source/open-store.ts';
import type { Terminal } from '../terminal.ts';
import { confirm } from '../text/confirm.ts';

/** `waymark erase` */
export const erase = defineCommand({
  name: 'erase',
  summary: 'Erase a session, or everything of one owner, for good',
  usage: '[session]',
  about:
    'The session goes with its snapshots, runs, events, steps and the sessions of its sub-agents; what a fork\nshares with it stays. No text of it is left in the store’s files.',
  examples: ['erase 019b2f6e-… --yes', 'erase --owner ada --store sqlite:waymark.db'],
  options: {
    yes: { type: 'boolean', short: 'y', about: 'Do not ask' },
    ...scopeOptions,
    ...jsonOption,
    ...storeOptions,
  },
  async run({ args, options, terminal }) {
    const [sessionId] = args;
    const { owner } = options;
    if (sessionId === undefined && owner === undefined) {
      throw usageError('Name a session, or an owner with --owner.', 'erase');
    }
    const what = sessionId === undefined ? `all sessions of ${owner}` : `session ${sessionId}`;
    await checkMeant(what, options.yes === true, terminal);
    const open = await openStore(options, terminal);
    try {
      const erased =
        sessionId === undefined
          ? await open.maintenance.eraseOwner(owner ?? '')
          : await eraseSession(sessionId);
      if (options.json) terminal.print(JSON.stringify({ sessions: erased }));
      else terminal.print(`Erased ${erased} ${erased === 1 ? 'session' : 'sessions'}.`);
    } finally {
      await open.close();
    }

    async function eraseSession(id: string): Promise<number> {
      for (const agent of agentsOf(options, open)) {
        const scope = { agent, ...(owner !== undefined && { owner }) };
        if (await open.timeline.deleteSession(scope, id)) return 1;
      }
      throw new WaymarkError('NOT_FOUND', `There is no session "${id}".`);
    }
  },
});

async function checkMeant(what: string, isSure: boolean, terminal: Terminal): Promise<void> {
  if (isSure) return;
  if (!terminal.interactive) throw usageError(`Add --yes to erase ${what}.`, 'erase');
  if (await confirm(`Erase ${what} for good?`, terminal)) return;
  throw new WaymarkError('CANCELLED', 'Nothing was erased.');
}
