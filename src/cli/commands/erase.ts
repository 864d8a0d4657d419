import type { SessionInfo } from '../../protocol/session.ts';
import type { Scope } from '../../store/contract/store.ts';
import { jsonOption } from '../command.ts';
import { checkCanConfirm, confirmDeletion, deletionOptions } from '../confirm-deletion.ts';
import { UsageError } from '../parse-arguments.ts';
import {
  findStoredSession,
  type OpenStore,
  rehearse,
  scopeOptions,
  scopesOf,
  sessionsIn,
  storeCommand,
} from '../source/open-store.ts';
import type { Terminal } from '../terminal.ts';
import { count, progressBar } from '../text/format.ts';
import { sessionTable } from '../text/session-text.ts';

/** `waymark erase` */
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
    checkCanConfirm(options, terminal, 'erase');
  },
  async run({ args: [given], options, terminal, ...open }) {
    const target =
      given === undefined
        ? await ownerTarget(open, options.owner ?? '', options.store, terminal)
        : await sessionTarget(open, options, given);
    if (options['dry-run']) {
      showTarget(target, options.json === true, terminal);
      return undefined;
    }
    if (!options.yes && !options.json) showTarget(target, false, terminal);
    await confirmDeletion(`Delete ${target.what} permanently?`, options, terminal);
    const sessions = await target.delete();
    return { receipt: { sessions }, text: `Deleted ${count(sessions, 'session')}.` };
  },
});

/** The sessions to delete. */
interface Target {
  readonly what: string;
  /** Absent where the agents of the store are not known. */
  readonly sessions?: readonly SessionInfo[];
  /** How many sessions, where only that is known. */
  readonly total?: number;
  delete(): Promise<number>;
}

async function sessionTarget(
  open: OpenStore,
  options: { readonly agent?: string; readonly owner?: string },
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
    return total === undefined ? target : { ...target, total };
  }
  const scopes: Scope[] = scopesOf({ owner }, open);
  const sessions = (await Promise.all(scopes.map((scope) => sessionsIn(open, scope)))).flat();
  return { ...target, sessions };
}

function showTarget({ what, sessions, total }: Target, json: boolean, terminal: Terminal): void {
  const number = sessions?.length ?? total;
  if (json) {
    const ids = sessions?.map(({ agent, sessionId }) => ({ agent, sessionId }));
    terminal.print(JSON.stringify({ dryRun: true, sessions: number, ...(ids && { items: ids }) }));
    return;
  }
  terminal.print(
    number === undefined
      ? `Would delete ${what}. A Postgres store is not counted beforehand: to list them, use --file.`
      : `Would delete ${what}: ${count(number, 'session')}.`,
  );
  if (sessions && sessions.length > 0) terminal.print(sessionTable(sessions, terminal.style));
}
