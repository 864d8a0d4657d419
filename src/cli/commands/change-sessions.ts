import { defined } from '../../core/json/json.ts';
import { type CommandCall, flag, option } from '../command.ts';
import { UsageError } from '../parse-arguments.ts';
import { findSession, findSnapshot } from '../source/find.ts';
import { agentsCommand } from '../source/open-agents.ts';
import { oneLine } from '../text/format.ts';

export const restore = agentsCommand({
  name: 'restore',
  summary: 'Continue a session from an earlier snapshot',
  usage: '<snapshot>',
  about:
    'Moves the head of the session to the snapshot, so that the next turn continues from there. Nothing is deleted: later\nturns stay as a branch, and you can restore them as well. The files of a workspace are restored too, after unsaved\nchanges were saved as a snapshot. To create a store from a backup, use restore-backup.',
  hint: 'To create a store from a backup, use "waymark restore-backup".',
  examples: ['restore 019b2f6e-…'],
  options: {
    partial: flag('for an aborted background run: keep what it had done, as a new snapshot'),
    'keep-files': flag('Leave the files of the workspace as they are'),
  },
  async run({ args: [given = ''], options, agents, sourceArguments }) {
    const { agent, snapshot } = await findSnapshot(agents, given);
    const { state: _, ...restored } = await agent.restore(snapshot.snapshotId, {
      ...(options.partial && { partial: true }),
      ...(options['keep-files'] && { workspace: false }),
    });
    const { snapshotId, sessionId, turnIndex } = restored;
    return {
      json: restored,
      text: `Session ${oneLine(sessionId, 80)} continues from turn ${turnIndex + 1} (${snapshotId}).`,
      note: `Continue with: waymark chat ${agent.name} --session ${sessionId}${sourceArguments}`,
    };
  },
});

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
