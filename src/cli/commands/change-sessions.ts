import { defined } from '../../core/json/json.ts';
import type { UndoPlan } from '../../protocol/undo.ts';
import { type CommandCall, flag, option } from '../command.ts';
import { confirmDeletion } from '../confirm-deletion.ts';
import { UsageError } from '../parse-arguments.ts';
import { findSession, findSnapshot } from '../source/find.ts';
import { agentsCommand } from '../source/open-agents.ts';
import { oneLine, table } from '../text/format.ts';

export const restore = agentsCommand({
  name: 'restore',
  summary: 'Continue a session from an earlier snapshot',
  usage: '<snapshot>',
  about:
    'Moves the head of the session to the snapshot, so that the next turn continues from there. Nothing is deleted: later\nturns stay as a branch, and you can restore them as well. The files of a workspace are restored too, after unsaved\nchanges were saved as a snapshot. With --undo, first undoes what the later turns did in other systems, where their\ntools can: shows the plan and asks for confirmation. To create a store from a backup, use restore-backup.',
  hint: 'To create a store from a backup, use "waymark restore-backup".',
  examples: ['restore 019b2f6e-…', 'restore 019b2f6e-… --undo --dry-run'],
  options: {
    partial: flag('for an aborted background run: keep what it had done, as a new snapshot'),
    'keep-files': flag('Leave the files of the workspace as they are'),
    undo: flag('Undo the effects of the later turns in other systems first', { destructive: true }),
    'dry-run': flag('With --undo: show the plan, and change nothing'),
    yes: flag('With --undo: do not ask; required without a terminal', {
      short: 'y',
      destructive: true,
    }),
    force: flag('With --undo: also undo what another branch needs', { destructive: true }),
  },
  check({ options, terminal }) {
    const { undo, yes, partial } = options;
    if (undo && partial) throw new UsageError('Use only one of --partial and --undo.');
    if (!undo && (yes || options['dry-run'] || options.force))
      throw new UsageError('--dry-run, --yes and --force belong to --undo.');
    if (undo && !yes && !options['dry-run'] && !terminal.interactive)
      throw new UsageError(
        'There is no terminal to ask for confirmation. Use --dry-run to see what would be undone, and --yes to undo it.',
      );
  },
  async run({ args: [given = ''], options, agents, sourceArguments, terminal }) {
    const { agent, snapshot } = await findSnapshot(agents, given);
    const plan = options.undo ? await agent.planUndo(snapshot.snapshotId) : undefined;
    if (plan !== undefined && options['dry-run']) return { json: plan, text: planText(plan) };
    if (plan !== undefined && !options.yes) {
      terminal.note(planText(plan));
      await confirmDeletion(
        'Undo these effects and restore?',
        options,
        terminal,
        'Nothing changed.',
      );
    }
    const { state: _, ...restored } = await agent.restore(snapshot.snapshotId, {
      ...(options.partial && { partial: true }),
      ...(options['keep-files'] && { workspace: false }),
      ...(plan && { undo: plan }),
      ...(options.force && { force: true }),
    });
    const { snapshotId, sessionId, turnIndex } = restored;
    return {
      json: restored,
      text: `Session ${oneLine(sessionId, 80)} continues from turn ${turnIndex + 1} (${snapshotId}).`,
      note: `Continue with: waymark chat ${agent.name} --session ${sessionId}${sourceArguments}`,
    };
  },
});

function planText({ effects }: UndoPlan): string {
  if (effects.length === 0) return 'There is nothing to undo.';
  const rows = effects.map(({ undo, at, tool, input, reason }) => [
    undo,
    at,
    oneLine(tool, 64),
    oneLine(JSON.stringify(input ?? null), 60),
    oneLine(reason ?? '', 80),
  ]);
  return table(rows);
}

export const fork = agentsCommand({
  name: 'fork',
  summary: 'Start a new session from a snapshot',
  usage: '<snapshot>',
  about:
    'The new session shares the history up to the snapshot. The original session does not change.',
  examples: ['fork 019b2f6e-…', 'fork 019b2f6e-… --session museums'],
  options: { session: option('id', 'The id of the new session [generated]') },
  async run({ args: [given = ''], options, agents, sourceArguments }) {
    const { agent, snapshot } = await findSnapshot(agents, given);
    const { state: _, ...first } = await agent.fork(
      snapshot.snapshotId,
      defined({ sessionId: options.session }),
    );
    return {
      json: first,
      text: `Forked into session ${oneLine(first.sessionId, 80)}.`,
      note: `Continue with: waymark chat ${agent.name} --session ${first.sessionId}${sourceArguments}`,
    };
  },
});

/** For a command that sets a text of a session or snapshot, or removes it. */
function removable(text: 'label' | 'title') {
  return {
    options: { remove: flag(`Remove the ${text}`, { destructive: true }) },
    check({ args, options }: CommandCall<{ remove: ReturnType<typeof flag> }>): void {
      if ((args[1] === undefined) !== (options.remove === true))
        throw new UsageError(`Give a ${text}, or --remove.`);
    },
  };
}

export const label = agentsCommand({
  name: 'label',
  summary: 'Label a snapshot, so that pruning keeps it',
  usage: '<snapshot> [label]',
  about: 'A new label replaces the old one.',
  examples: ['label 019b2f6e-… "before the refund"', 'label 019b2f6e-… --remove'],
  ...removable('label'),
  async run({ args: [given = '', text], agents }) {
    const { agent, snapshot } = await findSnapshot(agents, given);
    const { state: _, ...labelled } = await agent.label(snapshot.snapshotId, text ?? null);
    const { snapshotId } = labelled;
    return {
      json: labelled,
      text:
        text === undefined
          ? `Removed the label of ${snapshotId}.`
          : `Labelled ${snapshotId} "${oneLine(text)}".`,
    };
  },
});

export const rename = agentsCommand({
  name: 'rename',
  summary: 'Change the title of a session',
  usage: '<session> [title]',
  examples: ['rename 019b2f6e-… "Two days in Lisbon"', 'rename 019b2f6e-… --remove'],
  ...removable('title'),
  async run({ args: [given = '', title], agents }) {
    const { agent, session } = await findSession(agents, given);
    const renamed = await agent.updateSession(session.sessionId, { title: title ?? null });
    const id = oneLine(renamed.sessionId, 80);
    return {
      json: renamed,
      text:
        title === undefined
          ? `Removed the title of session ${id}.`
          : `Renamed session ${id} to "${oneLine(title)}".`,
    };
  },
});
