import { type History, historyDelta, messageHash } from '../../../session/history.ts';
import type { StateBase, StateWrite } from '../../contract/store.ts';
import type { Cipher } from '../content/cipher.ts';
import { type DocumentWrite, writeDocument } from '../content/document.ts';
import { type ManifestWrite, writeManifest } from '../content/manifest.ts';
import { type Home, messagePlace } from '../content/places.ts';
import type { SqlValue } from '../database/query.ts';
import { type Location, locationOf } from './location.ts';
import { type Rewrite, rewriteOf } from './segments.ts';

/** Rows to write so that a state can be read back: those that are new since its base, and no more. */
export interface StateRows {
  /** Where the base lies; absent when everything is new. */
  readonly base: Location | undefined;
  /** New messages, in the order of their rows. */
  readonly bodies: readonly SqlValue[];
  /** How the history is put together, when it is not the base's with the new messages behind it. */
  readonly rewrite: Rewrite | undefined;
  /** Messages in all. */
  readonly length: number;
  readonly custom: DocumentWrite;
  readonly artifacts: ManifestWrite;
}

/** Values that a store needs to write and read states. */
export interface StateContext {
  readonly database: string;
  readonly cipher: Cipher;
  /** Under encryption: whose session the runs of this process work on, so that a step of theirs need not ask. */
  readonly homes: Map<string, Home>;
}

const noHome: Home = { owner: '', agent: '', sessionId: '' };

/** Whose session a run works on, without asking the database; `undefined` when only the database knows. */
export function runHome(runId: string, { cipher, homes }: StateContext): Home | undefined {
  // Nothing is bound to its place while nothing is encrypted.
  return cipher.keyId === undefined ? noHome : homes.get(runId);
}

/** Works out the new rows of a state. Costs what is new; touches no database. */
export function stateRows(write: StateWrite, { database, cipher }: StateContext): StateRows {
  const base = locationOf(write.base, database);
  const { history, custom, artifacts } = write.state;
  const from = base === undefined ? undefined : write.base?.state;
  const customBase =
    base?.custom === undefined || from?.custom === undefined
      ? undefined
      : { ref: base.custom, value: from.custom };
  const artifactBase =
    base?.artifacts === undefined || from === undefined
      ? undefined
      : { ref: base.artifacts, value: from.artifacts };
  const { bodies, rewrite } = messageRows(base, write.base, history, cipher);
  return {
    base,
    bodies,
    rewrite,
    length: history.length,
    custom: writeDocument(customBase, custom, write.customPatch, cipher),
    artifacts: writeManifest(artifactBase, artifacts, cipher),
  };
}

function messageRows(
  location: Location | undefined,
  base: StateBase | undefined,
  history: History,
  cipher: Cipher,
): Pick<StateRows, 'bodies' | 'rewrite'> {
  const before = location === undefined ? undefined : base?.state.history;
  const delta = historyDelta(before, history);
  const bodyOf = (message: object): SqlValue =>
    cipher.encrypt(JSON.stringify(message), messagePlace);
  if (delta.kind === 'append') return { bodies: delta.messages.map(bodyOf), rewrite: undefined };
  const fresh = delta.pieces.flatMap((piece) => (piece.kind === 'new' ? piece.messages : []));
  const common = commonLength(before, history);
  return {
    bodies: fresh.map(bodyOf),
    rewrite: rewriteOf(location?.view, delta.pieces, common),
  };
}

function commonLength(a: History | undefined, b: History): number {
  let length = 0;
  for (;;) {
    const left = a?.at(length);
    const right = b.at(length);
    if (left === undefined || right === undefined) return length;
    if (left !== right && messageHash(left) !== messageHash(right)) return length;
    length++;
  }
}
