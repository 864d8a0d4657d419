import type { Artifact, Part } from '../../../src/client/index.ts';
import { jsonEqual } from '../../../src/core/json/json.ts';
import { fileHashOf } from '../../../src/protocol/artifacts.ts';
import { bytes } from './format.ts';

/** The label of an artifact; without a name, its place. */
export function artifactName({ name }: Artifact, place: number): string {
  return name ?? `#${place}`;
}

/** All that is text in an artifact: its texts, and its data as JSON. */
export function artifactText({ parts }: Artifact): string {
  return parts
    .map((part) => {
      if ('text' in part) return part.text;
      if ('data' in part) return JSON.stringify(part.data, null, 2);
      const stored = storedSize(part);
      if ('media' in part && stored !== undefined)
        return `[${part.media.contentType ?? 'file'}, ${bytes(stored)}]`;
      if ('media' in part)
        return `[${part.media.contentType ?? 'media'}, ${part.media.url.length} characters]`;
      return JSON.stringify(part, null, 2);
    })
    .join('\n');
}

/** How many bytes a file has that the store keeps apart from the state; `undefined` for any other part. */
export function storedSize(part: Part): number | undefined {
  if (fileHashOf(part) === undefined) return undefined;
  const size = part.metadata?.['size'];
  return typeof size === 'number' ? size : 0;
}

/** How many characters an artifact has, over all its parts; a file that the store keeps counts with its bytes. */
export function artifactSize({ parts }: Artifact): number {
  return parts.reduce((sum, part) => {
    const stored = storedSize(part);
    if (stored !== undefined) return sum + stored;
    if ('text' in part) return sum + part.text.length;
    if ('media' in part) return sum + part.media.url.length;
    return sum + JSON.stringify(part).length;
  }, 0);
}

/** One artifact in two states. */
export interface ArtifactChange {
  readonly name: string;
  readonly kind: 'added' | 'removed' | 'changed';
  readonly before?: Artifact;
  readonly after?: Artifact;
}

/** Which artifacts differ between two states. */
export function artifactChanges(
  before: readonly Artifact[],
  after: readonly Artifact[],
): readonly ArtifactChange[] {
  const old = new Map(before.map((artifact, at) => [artifactName(artifact, at), artifact]));
  const now = new Map(after.map((artifact, at) => [artifactName(artifact, at), artifact]));
  const changes: ArtifactChange[] = [];
  for (const name of new Set([...old.keys(), ...now.keys()])) {
    const [was, is] = [old.get(name), now.get(name)];
    if (was && is) {
      if (!jsonEqual(was, is)) changes.push({ name, kind: 'changed', before: was, after: is });
    } else if (is) changes.push({ name, kind: 'added', after: is });
    else if (was) changes.push({ name, kind: 'removed', before: was });
  }
  return changes;
}

/** The language of a file by the end of its name. */
export function languageOf(name: string): string {
  return /\.([\w]+)$/.exec(name)?.[1]?.toLowerCase() ?? '';
}
