import { type Artifact, type SnapshotRef, textOf } from 'waymark';
import type { Assistant } from './assistant.ts';

// #region changes
/** The changed lines of the drafts between two turns. Works for any two snapshots, even on different branches. */
export async function showChanges(
  assistant: Assistant,
  before: SnapshotRef,
  after: SnapshotRef,
): Promise<string> {
  const { artifacts } = await assistant.diff(before, after);
  const [old, current] = await Promise.all([
    assistant.getSnapshot(before),
    assistant.getSnapshot(after),
  ]);
  return artifacts
    .map(({ name, change }) => {
      const from = linesOf(old?.state?.artifacts, name);
      const to = linesOf(current?.state?.artifacts, name);
      const removed = from.filter((line) => !to.includes(line)).map((line) => `- ${line}`);
      const added = to.filter((line) => !from.includes(line)).map((line) => `+ ${line}`);
      return [`${name} (${change})`, ...removed, ...added].join('\n');
    })
    .join('\n');
}
// #endregion

function linesOf(artifacts: readonly Artifact[] | undefined, name: string): readonly string[] {
  const found = artifacts?.find((artifact) => artifact.name === name);
  return found ? textOf({ content: found.parts }).split('\n') : [];
}
