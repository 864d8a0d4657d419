import { reply } from './text.ts';

/** How a model under test streams its answer. */
export interface Pace {
  readonly pieces: number;
  /** Milliseconds from one piece to the next, by the clock. @default none: all pieces come at once */
  readonly every?: number | undefined;
}

/** What a piece of a paced answer begins with; its time follows. */
export const stampMark = '@';

/** Characters of the time in a stamp. */
const stampLength = 12;

/** Emits the pieces of an answer; gives the text of the whole message. */
export async function emitAnswer(
  { pieces, every = 0 }: Pace,
  emit: (piece: string) => unknown,
): Promise<string> {
  const { text, chunks } = reply(pieces);
  const started = performance.now();
  for (const [at, piece] of chunks.entries()) {
    if (every > 0) await until(started + at * every);
    const wait = emit(every > 0 ? stamped(piece) : piece);
    if (wait instanceof Promise) await wait;
  }
  return text;
}

/** Resolves at a time of `performance.now()`; at once when it is over. */
export async function until(due: number): Promise<void> {
  const left = due - performance.now();
  // The plain timer: the one of `timers/promises` costs as much as half a token.
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, Math.ceil(left)));
}

/** A piece of the same length that says when it was emitted. */
export function stamped(piece: string): string {
  const stamp = clockMs().toFixed(2).padStart(stampLength, '0');
  return stampMark + stamp + piece.slice(stampMark.length + stampLength);
}

/** The time of the stamp that begins at a byte; `undefined` when it is cut off. */
export function stampAt(bytes: Buffer, at: number): number | undefined {
  const from = at + stampMark.length;
  if (from + stampLength > bytes.length) return undefined;
  let ms = 0;
  for (let place = from; place < from + stampLength; place++) {
    const digit = (bytes[place] ?? 0) - 48;
    if (digit >= 0 && digit <= 9) ms = ms * 10 + digit;
  }
  return ms / 100;
}

/** Milliseconds of a clock that all processes of a machine share. */
export function clockMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return (seconds % 1_000_000) * 1000 + nanoseconds / 1_000_000;
}
