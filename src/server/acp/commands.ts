import type { AvailableCommand } from '@agentclientprotocol/sdk';
import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { hasStatus, invalid, WaymarkError } from '../../core/error.ts';
import { textOf } from '../../protocol/messages.ts';
import { endsTurn, type Snapshot } from '../../protocol/snapshot.ts';
import type { UndoPlan } from '../../protocol/undo.ts';
import { type Asker, choose } from './ask.ts';
import type { Updates } from './updates.ts';

/** The session that a command is about. */
interface CommandSession {
  readonly id: string;
  readonly agent: Agent;
  readonly call: CallOptions;
  readonly updates: Updates;
  readonly asking: Pick<Asker, 'client' | 'sessionId'>;
  from: string | undefined;
  remember(sessionId: string): Promise<unknown>;
}

interface SlashCommand extends AvailableCommand {
  run(session: CommandSession, rest: string, signal: AbortSignal): Promise<string>;
}

const hint = 'number of turns, or the id of a snapshot';

const commands: readonly SlashCommand[] = [
  {
    name: 'turns',
    description: 'List the turns of this session, to restore or branch from',
    run: async (session) => await listTurns(session),
  },
  {
    name: 'restore',
    description:
      'Restore conversation and files as they were some turns ago; later turns stay as a branch',
    input: { hint: `${hint} (1)` },
    async run(session, rest, signal) {
      const target = await find(session, rest);
      return await restore(session, target, { signal, isUndo: false });
    },
  },
  {
    name: 'branch',
    description: 'Let the next message continue from an earlier turn; this branch stays',
    input: { hint: `${hint} (1)` },
    async run(session, rest) {
      const target = await find(session, rest);
      session.from = target.snapshotId;
      return `Your next message continues after turn ${target.turnIndex + 1} (${target.snapshotId}).`;
    },
  },
  {
    name: 'fork',
    description: 'Copy this session, or an earlier turn of it, into a new session',
    input: { hint: `${hint} (0)` },
    async run(session, rest) {
      const target = await find(session, rest || '0');
      const forked = await session.agent.fork(target.snapshotId, session.call);
      await session.remember(forked.sessionId);
      return `Forked after turn ${target.turnIndex + 1} into session ${forked.sessionId}. Open it from the list of sessions.`;
    },
  },
  {
    name: 'undo',
    description:
      'Undo what tools did in other systems since an earlier turn, and restore that turn; shows the plan first',
    input: { hint: `${hint} (1)` },
    async run(session, rest, signal) {
      const target = await find(session, rest);
      return await restore(session, target, { signal, isUndo: true });
    },
  },
];

export const availableCommands: AvailableCommand[] = commands.map(
  ({ run: _, ...command }) => command,
);

/** The result of a slash command, as text; `undefined` if the prompt is none. */
export async function runCommand(
  session: CommandSession,
  prompt: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const [, name, rest = ''] = /^\/(\w+)(?:\s+(.*))?$/s.exec(prompt.trim()) ?? [];
  const command = commands.find((each) => each.name === name);
  return await command?.run(session, rest.trim(), signal);
}

async function turnsOf(
  { agent, id, call }: CommandSession,
  all = false,
): Promise<readonly Snapshot[]> {
  const found: Snapshot[] = [];
  let cursor: string | undefined;
  do {
    const page = await agent.listSnapshots(id, {
      ...call,
      limit: 200,
      includeOrphaned: all,
      ...(cursor !== undefined && { cursor }),
    });
    found.push(...page.items);
    cursor = page.next;
  } while (cursor !== undefined);
  return found.filter(({ event, status }) => endsTurn(event) && status === 'succeeded');
}

/** The snapshot that a user means: so many turns ago, or the beginning of an id, also on another branch. */
async function find(session: CommandSession, given: string): Promise<Snapshot> {
  const back = Number(given || 1);
  if (Number.isInteger(back) && back >= 0 && back < 100_000) {
    const turns = await turnsOf(session);
    const target = turns.at(-1 - back);
    if (target) return target;
    throw new WaymarkError(
      'OUT_OF_RANGE',
      `Cannot go back ${back} turns: this session has ${turns.length}.`,
    );
  }
  const all = await turnsOf(session, true);
  const found = all.filter(({ snapshotId }) => given.length >= 4 && snapshotId.startsWith(given));
  if (found.length === 1 && found[0]) return found[0];
  throw invalid(
    `${JSON.stringify(given.slice(0, 80))} is no turn of this session. Use a number of turns, or an id from /turns.`,
  );
}

async function listTurns(session: CommandSession): Promise<string> {
  const turns = (await turnsOf(session)).slice(-30);
  if (turns.length === 0) return 'This session has no turns yet.';
  const head = await session.agent.getSession(session.id, session.call);
  const asked = (head?.state?.messages ?? []).filter(({ role }) => role === 'user').map(textOf);
  const lines = turns.map(({ snapshotId, turnIndex, createdAt }, at) => {
    const text = asked.at(at - turns.length) ?? '';
    const back = turns.length - 1 - at;
    return `| ${back} | \`${snapshotId}\` | ${createdAt.slice(0, 16).replace('T', ' ')} | ${turnIndex + 1}. ${inCell(text)} |`;
  });
  return ['| back | snapshot | saved | turn |', '| --- | --- | --- | --- |', ...lines].join('\n');
}

function inCell(text: string): string {
  return text.replace(/[\s|]+/g, ' ').slice(0, 80);
}

/** Restores a turn. If tools have changed other systems since, the user sees the plan and decides. */
async function restore(
  session: CommandSession,
  { snapshotId, turnIndex }: Snapshot,
  { signal, isUndo }: { readonly signal: AbortSignal; readonly isUndo: boolean },
): Promise<string> {
  const { agent, call } = session;
  const plan = await planFor(session, snapshotId, isUndo);
  if (isUndo && plan.effects.length === 0) {
    return 'No tool has changed another system since that turn. Use /restore to restore conversation and files.';
  }
  const decision =
    plan.effects.length > 0 ? await decide(session, plan, { signal, isUndo }) : 'keep';
  if (decision === 'cancel') return 'Nothing was changed.';
  await agent.restore(snapshotId, { ...call, ...(decision === 'undo' && { undo: plan }) });
  session.from = undefined;
  const undone = decision === 'undo' ? `Undid ${count(plan)}. ` : '';
  return `${undone}Restored conversation and files after turn ${turnIndex + 1} (${snapshotId}). Later messages above are on another branch: /turns and /restore <id> bring them back.`;
}

async function planFor(
  { agent, call, id }: CommandSession,
  snapshotId: string,
  isUndo: boolean,
): Promise<UndoPlan> {
  try {
    return await agent.planUndo(snapshotId, call);
  } catch (error) {
    // A store that records no effects can restore all the same.
    if (isUndo || !hasStatus(error, 'FAILED_PRECONDITION')) throw error;
    return { id: '', sessionId: id, snapshotId, effects: [] };
  }
}

async function decide(
  session: CommandSession,
  plan: UndoPlan,
  { signal, isUndo }: { readonly signal: AbortSignal; readonly isUndo: boolean },
): Promise<'undo' | 'keep' | 'cancel'> {
  const isPossible = plan.effects.every(({ undo }) => undo === 'possible' || undo === 'done');
  const text = describe(plan);
  await session.updates.text(`${text}\n\n`);
  const undo = {
    optionId: 'undo',
    name: `Undo ${count(plan)} and restore`,
    kind: 'allow_once',
  } as const;
  const keep = { optionId: 'keep', name: 'Restore without undoing', kind: 'allow_once' } as const;
  const cancel = { optionId: 'cancel', name: 'Cancel', kind: 'reject_once' } as const;
  const chosen = await choose(
    { ...session.asking, signal },
    {
      toolCallId: `undo-${plan.id.slice(0, 16)}`,
      title: `Undo ${count(plan)}?`,
      kind: 'other',
      content: [{ type: 'content', content: { type: 'text', text } }],
      options: [...(isPossible ? [undo] : []), ...(isUndo ? [] : [keep]), cancel],
    },
  );
  return chosen === 'undo' || chosen === 'keep' ? chosen : 'cancel';
}

function count({ effects }: UndoPlan): string {
  return effects.length === 1 ? '1 effect' : `${effects.length} effects`;
}

function describe({ effects }: UndoPlan): string {
  const lines = effects.map(({ tool, input, undo, reason, at }) => {
    const why = reason === undefined ? '' : `: ${reason}`;
    return `- **${tool}** ${JSON.stringify(input ?? {}).slice(0, 200)} at ${at}: undo is ${undo}${why}`;
  });
  return ['Since that turn, tools have changed other systems:', '', ...lines].join('\n');
}
