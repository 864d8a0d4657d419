import type { SessionInfo } from '../../protocol/session.ts';
import { jsonOption } from '../command.ts';
import { checkCanConfirm, confirmDeletion, deletionOptions } from '../confirm-deletion.ts';
import { UsageError } from '../parse-arguments.ts';
import {
  findStoredSession,
  type OpenStore,
  rehearse,
  type ScopeFilter,
  scopeOptions,
  scopesOf,
  sessionsIn,
  storeCommand,
} from '../source/open-store.ts';
import type { Terminal } from '../terminal.ts';
import { count as counted, progressBar } from '../text/format.ts';
import { sessionTable } from '../text/session-text.ts';

export const erase = storeCommand({
  name: 'erase',
  summary: 'Delete a session, or all sessions of an owner, permanently',
  usage: '[session]',
  destructive: true,
  about:
    'Deletes the session with its snapshots, runs, events, steps and the sessions of its sub-agents. Content that a fork\nshares with it is kept. Deleted text is removed from the files of the store. Shows the sessions and asks for confirmation.',
  examples: [
    'erase 019b2f6e-… --dry-run',
    'erase 019b2f6e-…',
    'erase --owner ada --store sqlite:waymark.db --yes',
  ],
  options: { ...deletionOptions, ...scopeOptions, ...jsonOption },
  check({ args: [given], options, terminal }) {
    if (given === undefined && options.owner === undefined) {
      throw new UsageError('Name a session, or an owner with --owner.');
    }
    if (given === undefined && options.agent !== undefined) {
      throw new UsageError(
        '--owner without a session deletes the sessions of all agents: leave out --agent.',
      );
    }
    checkCanConfirm(options, terminal);
  },
  async run({ args: [given], options, terminal, ...open }) {
    const { yes, json, 'dry-run': isDryRun } = options;
    const target =
      given === undefined
        ? await ownerTarget(open, options.owner ?? '', options.store, terminal)
        : await sessionTarget(open, options, given);
    const { what, sessions, total = sessions?.length } = target;
    if (isDryRun && json) {
      const items = sessions?.map(({ agent, sessionId }) => ({ agent, sessionId }));
      return { receipt: { dryRun: true, sessions: total, items } };
    }
    if (isDryRun || !(yes || json)) {
      const count = total === undefined ? uncounted : `: ${counted(total, 'session')}.`;
      terminal.print(`Would delete ${what}${count}`);
      if (sessions?.length) terminal.print(sessionTable(sessions, terminal.style));
    }
    if (isDryRun) return undefined;
    await confirmDeletion(`Delete ${what} permanently?`, options, terminal);
    const deleted = await target.delete();
    return { receipt: { sessions: deleted }, text: `Deleted ${counted(deleted, 'session')}.` };
  },
});

const uncounted = '. A Postgres store is not counted beforehand: to list them, use --file.';

interface Target {
  readonly what: string;
  /** Absent where the agents of the store are not known. */
  readonly sessions?: readonly SessionInfo[];
  /** How many sessions, where only that is known. */
  readonly total?: number | undefined;
  delete(): Promise<number>;
}

async function sessionTarget(
  open: OpenStore,
  options: ScopeFilter,
  given: string,
): Promise<Target> {
  const { scope, session } = await findStoredSession(open, options, given);
  return {
    what: `session ${session.sessionId} of agent ${scope.agent}`,
    sessions: [session],
    delete: async () => Number(await open.timeline.deleteSession(scope, session.sessionId)),
  };
}

async function ownerTarget(
  open: OpenStore,
  owner: string,
  spec: string | undefined,
  terminal: Terminal,
): Promise<Target> {
  const target = {
    what: `all sessions of owner "${owner}"`,
    delete: () =>
      open.maintenance.eraseOwner(owner, {
        onProgress: (done, { total }) => terminal.progress(progressBar('Deleting', done, total)),
      }),
  };
  if (spec !== undefined) {
    const total = await rehearse(spec, terminal.cwd, (copy) => copy.eraseOwner(owner));
    return { ...target, total };
  }
  const lists = scopesOf({ owner }, open).map((scope) => sessionsIn(open, scope));
  return { ...target, sessions: (await Promise.all(lists)).flat() };
}
