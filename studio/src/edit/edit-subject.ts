import type { Artifact, EditChange } from '../../../src/client/index.ts';
import { diffJson } from '../../../src/core/json/diff.ts';
import type { Json } from '../lib/json.ts';

/** The subject of an edit dialog, as text. */
export interface EditSubject {
  readonly title: string;
  /** Names the text field. */
  readonly label: string;
  readonly text: string;
  /** The change that the text makes, or what is wrong with it. */
  readonly read: (text: string) => EditChange | string;
}

/** The custom state. Only what was changed is sent, so that what the server hides from this page stays. */
export function customSubject(custom: Json | undefined): EditSubject {
  return {
    title: 'Edit the custom state',
    label: 'Custom state, as JSON',
    text: custom === undefined ? '' : JSON.stringify(custom, null, 2),
    read(text) {
      let edited: Json;
      try {
        edited = JSON.parse(text) as Json;
      } catch (error) {
        return `This is not JSON: ${error instanceof Error ? error.message : error}`;
      }
      return custom === undefined ? { custom: edited } : { customPatch: diffJson(custom, edited) };
    },
  };
}

/** A file with one text; `undefined` for other files. */
export function artifactSubject(artifact: Artifact): EditSubject | undefined {
  const [part, ...others] = artifact.parts;
  const { name } = artifact;
  if (name === undefined || part === undefined || !('text' in part) || others.length > 0) {
    return undefined;
  }
  return {
    title: `Edit ${name}`,
    label: 'Text',
    text: part.text,
    read: (text) => ({ artifacts: [{ ...artifact, parts: [{ ...part, text }] }] }),
  };
}
