import { WaymarkError } from '../core/error.ts';
import { spliceText } from '../protocol/artifact-patch.ts';
import type { Artifact } from '../protocol/state.ts';
import type { ArtifactPatch } from '../protocol/turn.ts';

/**
 * An edit of an artifact's text: the characters from `from` to `to` become `text`; or `find`, which must occur exactly
 * once, becomes `replace`. Places are those before all edits.
 */
export type TextEdit =
  | { readonly from: number; readonly to: number; readonly text: string }
  | { readonly find: string; readonly replace: string };

/** The artifact with its text edited, and the edit as it is streamed. It must have exactly one text part. */
export function editArtifactText(
  artifact: Artifact,
  edits: readonly TextEdit[],
): { readonly artifact: Artifact; readonly patch: ArtifactPatch } {
  const texts = artifact.parts.filter((part) => 'text' in part);
  const [only] = texts;
  if (only === undefined || texts.length > 1) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Artifact "${artifact.name}" has ${texts.length} text parts, so its text cannot be edited. Use addArtifacts to replace it.`,
    );
  }
  const { text } = only;
  const places = edits.map((edit) => placed(text, edit)).sort((a, b) => a.from - b.from);
  for (const [at, { from }] of places.entries()) {
    if (from < (places[at - 1]?.to ?? 0)) throw invalid('Two edits of an artifact overlap.');
  }
  const edited = { ...only, text: spliceText(text, places) };
  const parts = artifact.parts.map((part) => (part === only ? edited : part));
  const { name = '' } = artifact;
  return {
    artifact: { ...artifact, parts },
    patch: { name, length: text.length, edits: places },
  };
}

function placed(text: string, edit: TextEdit): { from: number; to: number; text: string } {
  if ('find' in edit) {
    const from = edit.find === '' ? -1 : text.indexOf(edit.find);
    if (from < 0) throw unclear(edit.find, 'does not occur in it');
    if (text.indexOf(edit.find, from + 1) >= 0) throw unclear(edit.find, 'occurs more than once');
    return { from, to: from + edit.find.length, text: edit.replace };
  }
  const { from, to } = edit;
  const isRange = Number.isInteger(from) && Number.isInteger(to) && from >= 0 && from <= to;
  if (isRange && to <= text.length) return { from, to, text: edit.text };
  throw invalid(`An edit from ${from} to ${to} does not fit a text of ${text.length} characters.`);
}

function invalid(message: string): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', message);
}

function unclear(find: string, why: string): WaymarkError {
  const shown = find.length > 60 ? `${find.slice(0, 60)}…` : find;
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `The artifact cannot be edited: "${shown}" ${why}. Give a text that occurs exactly once.`,
  );
}
