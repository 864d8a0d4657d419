import { failedPrecondition, WaymarkError } from '../../core/error.ts';
import { createSha256 } from '../../core/platform.ts';
import { fileHashesIn, treeHashesIn } from '../../protocol/artifacts.ts';
import type { SessionState } from '../../session/session-state.ts';

/** Bytes that a store keeps, reads and writes at a time. Part of the stored format. */
export const filePieceLength: number = 256 * 1024;

/** How long a file is kept for a run that has died, or for an import, before a state names it. */
export const fileHoldMs = 3_600_000;

/**
 * Data in pieces of {@link filePieceLength} bytes, the last of which may be shorter. All are views of one buffer, so each is valid only until
 * the next one is asked for. `room` bytes before each piece are the caller's.
 */
export async function* inPieces(
  data: AsyncIterable<Uint8Array>,
  room = 0,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const buffer = new Uint8Array(room + filePieceLength);
  let filled = 0;
  for await (const given of data) {
    for (let at = 0; at < given.length; ) {
      const taken = given.subarray(at, at + filePieceLength - filled);
      buffer.set(taken, room + filled);
      filled += taken.length;
      at += taken.length;
      if (filled < filePieceLength) continue;
      yield buffer.subarray(room);
      filled = 0;
    }
  }
  if (filled > 0) yield buffer.subarray(room, room + filled);
}

/** A piece that a range needs: its number, and the range within it. */
export interface NeededPiece {
  readonly number: number;
  readonly from: number;
  readonly to: number;
}

/** The pieces of a file that the bytes from one position to before another are in. */
export function* neededPieces(from: number, to: number): Generator<NeededPiece> {
  for (let at = from; at < to; ) {
    const number = Math.floor(at / filePieceLength);
    const start = number * filePieceLength;
    const end = Math.min(to, start + filePieceLength);
    yield { number, from: at - start, to: end - start };
    at = end;
  }
}

/** Refuses a state that names a file which is not stored, unless the state before named it already. */
export function checkFiles(
  state: SessionState,
  before: () => SessionState,
  isStored: (hash: string) => boolean,
): void {
  const missing = namedIn(state).filter((hash) => !isStored(hash));
  if (missing.length === 0) return;
  const known = namedIn(before());
  for (const hash of missing) if (!known.includes(hash)) throw missingFile(hash);
}

/** The files and trees that a state names. */
function namedIn({ artifacts }: SessionState): readonly string[] {
  return [...fileHashesIn(artifacts), ...treeHashesIn(artifacts)];
}

/** The hash of bytes that are in memory as a whole. */
export function hashOfBytes(bytes: Uint8Array): string {
  const sum = createSha256();
  sum.update(bytes);
  return sum.hex();
}

export function missingFile(hash: string): WaymarkError {
  return failedPrecondition(
    `The state names the file ${hash}, which is not in this store. Save it with session.saveFile() in the turn that adds it.`,
    { details: { file: hash } },
  );
}

export function damagedFile(hash: string, why: string): WaymarkError {
  return new WaymarkError(
    'DATA_LOSS',
    `The stored file ${hash} is damaged: ${why}. Restore it from a backup.`,
    { details: { file: hash } },
  );
}
