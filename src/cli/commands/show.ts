import { WaymarkError } from '../../core/error.ts';
import { loadedSkills } from '../../protocol/loaded-skills.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { option } from '../command.ts';
import { findTurn } from '../source/find.ts';
import { agentsCommand } from '../source/open-agents.ts';
import type { Style } from '../terminal.ts';
import { oneLine, safe, sections, table, when } from '../text/format.ts';
import { artifactSummary, artifactText, messageLines, partText } from '../text/message-text.ts';

export const show = agentsCommand({
  name: 'show',
  summary: 'Show the conversation, state and artifacts of a snapshot',
  usage: '<snapshot>',
  about:
    'Takes the id of a snapshot or run. With the id of a session, it shows the last turn if that failed, otherwise the head.',
  examples: ['show 019b2f6e-…', 'show 019b2f6e-… --artifact draft.md > draft.md'],
  options: { artifact: option('name', 'Print the text of this artifact only') },
  async run({ args: [given = ''], options, terminal, agents }) {
    const { snapshot } = await findTurn(agents, given);
    if (options.artifact === undefined)
      return { json: snapshot, text: snapshotText(snapshot, terminal.style) };
    terminal.write(textOf(snapshot, options.artifact));
    return undefined;
  },
});

function textOf({ state }: Snapshot, name: string): string {
  const artifacts = state?.artifacts ?? [];
  const found = artifacts.find((each) => each.name === name);
  const text = found && artifactText(found);
  if (text !== undefined) return text.endsWith('\n') ? text : `${text}\n`;
  const names = artifacts.map((each) => each.name ?? '(unnamed)').join(', ') || 'none';
  const reason = found === undefined ? `the snapshot has ${names}` : 'it is not text';
  throw new WaymarkError('NOT_FOUND', `There is no text artifact "${oneLine(name)}": ${reason}.`);
}

function snapshotText(snapshot: Snapshot, style: Style): string {
  const { state, error, label, finishReason, usage } = snapshot;
  const facts = table(
    [
      ['snapshot', snapshot.snapshotId],
      ['session', oneLine(snapshot.sessionId, 80)],
      ['parent', snapshot.parentId ?? ''],
      ['turn', `${snapshot.turnIndex + 1}  (${snapshot.event})`],
      [
        'status',
        [...new Set([snapshot.status, finishReason, snapshot.orphaned ? 'orphaned' : ''])]
          .filter(Boolean)
          .join(', '),
      ],
      ['error', error ? `${error.status}: ${oneLine(error.message, 200)}` : ''],
      ['', error?.status === 'INTERNAL' ? whereTheCauseIs : ''],
      ['label', label === undefined ? '' : oneLine(label)],
      ['created', when(snapshot.createdAt)],
      ['cached', countText(usage?.cachedInputTokens)],
      ['expected', countText(usage?.expectedCachedTokens)],
      ['written', countText(usage?.cacheWriteTokens)],
      ['tokens', countText(usage?.totalTokens)],
      ['hash', snapshot.stateHash],
    ].filter(([, value]) => value !== ''),
  );
  const messages = (state?.messages ?? []).flatMap((message) => messageLines(message, style));
  const waiting = pendingInterrupts(state?.messages ?? []).map(
    (part) => `  ${style.warn('?')} ${partText(part, style)}`,
  );
  const custom = state?.custom === undefined ? [] : [safe(JSON.stringify(state.custom, null, 2))];
  const artifacts = (state?.artifacts ?? []).map((each) => `  ${artifactSummary(each)}`);
  const skills = [...loadedSkills(state?.messages ?? []).values()].map(
    ({ name, version, origin }) => [name, version.slice(0, 12), origin ?? ''],
  );
  const content = sections(
    [
      ['Messages', messages],
      ['Waiting for an answer', waiting],
      ['Custom state', custom],
      ['Artifacts', artifacts],
      ['Skills', skills.length === 0 ? [] : table(skills).split('\n').map(safe)],
    ],
    style,
  );
  return [facts, content].filter(Boolean).join('\n\n');
}

// Its text may hold anything, so stores keep only what clients may see.
const whereTheCauseIs =
  'The cause is not stored. The process that ran the turn has logged it, and passed it to `onError`.';

function countText(tokens: number | undefined): string {
  return tokens === undefined ? '' : String(tokens);
}
