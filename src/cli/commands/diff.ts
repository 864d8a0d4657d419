import { diffLines, withContext } from '../../core/diff.ts';
import { valueAt } from '../../core/json/diff.ts';
import type { Json } from '../../core/json/json.ts';
import type { Diff } from '../../protocol/requests.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { findSnapshot } from '../source/find.ts';
import { agentsCommand } from '../source/open-agents.ts';
import type { Style } from '../terminal.ts';
import { oneLine, safe, sections, shortJson } from '../text/format.ts';
import { artifactText, messageLines } from '../text/message-text.ts';

export const diff = agentsCommand({
  name: 'diff',
  summary: 'Show what changed from one snapshot to another',
  usage: '<from> <to>',
  about:
    'Lists added and removed messages, changed paths of the custom state, and changed lines of artifacts and files, and skills that were loaded in\nanother version.',
  examples: ['diff 019b2f6e-… 019b2f70-…'],
  async run({ args: [from = '', to = ''], terminal, agents }) {
    const { agent, snapshot: before } = await findSnapshot(agents, from);
    const { snapshot: after } = await findSnapshot([agent], to);
    const changes = await agent.diff(before.snapshotId, after.snapshotId);
    return { json: changes, text: diffText(changes, before, after, terminal.style) };
  },
});

function diffText(changes: Diff, before: Snapshot, after: Snapshot, style: Style): string {
  const messages = [
    ...changes.messages.removed.flatMap((each) =>
      messageLines(each, style).map((line) => style.bad(`- ${line}`)),
    ),
    ...changes.messages.added.flatMap((each) =>
      messageLines(each, style).map((line) => style.good(`+ ${line}`)),
    ),
  ];
  const custom = changes.custom.map(({ op, path, value }) => {
    const place = path === '' ? '(the whole state)' : safe(path);
    const old = valueAt(before.state?.custom as Json | undefined, path);
    if (op === 'remove') return style.bad(`- ${place}  ${shortJson(old)}`);
    if (op === 'add') return style.good(`+ ${place}  ${shortJson(value)}`);
    return `~ ${place}  ${style.bad(shortJson(old))} → ${style.good(shortJson(value))}`;
  });
  const artifacts = changes.artifacts.flatMap(({ name, change }) => {
    const title = `${signs[change]} ${oneLine(name)}`;
    return change === 'changed' ? [title, ...artifactLines(name, before, after, style)] : [title];
  });
  const files = (changes.files ?? []).flatMap(({ path, change, lines = [] }) => [
    `${signs[change]} ${oneLine(path, 1_000)}`,
    ...(change === 'changed' ? linesText(lines, style) : []),
  ]);
  const skills = (changes.skills ?? []).map(({ name, change, from = '', to = '' }) => {
    const versions = [from, to].filter(Boolean).map((version) => version.slice(0, 12));
    return `${signs[change]} ${oneLine(name)}  ${versions.join(' → ')}`;
  });
  const shown = sections(
    [
      ['Messages', messages],
      ['Custom state', custom],
      ['Artifacts', artifacts],
      ['Files', files],
      ['Skills', skills],
    ],
    style,
  );
  return shown || 'No difference.';
}

const signs = { same: ' ', added: '+', removed: '-', changed: '~' } as const;

function artifactLines(name: string, before: Snapshot, after: Snapshot, style: Style): string[] {
  const [old, now] = [before, after].map(({ state }) => {
    const found = state?.artifacts?.find((each) => each.name === name);
    return found && artifactText(found);
  });
  if (old === undefined || now === undefined) return [];
  return linesText(withContext(diffLines(old, now)), style);
}

function linesText(
  lines: readonly { readonly kind: 'same' | 'added' | 'removed'; readonly text: string }[],
  style: Style,
): string[] {
  return lines.map(({ kind, text }) => {
    const line = `    ${signs[kind]} ${safe(text)}`;
    if (kind === 'same') return line.trimEnd();
    return kind === 'added' ? style.good(line) : style.bad(line);
  });
}
