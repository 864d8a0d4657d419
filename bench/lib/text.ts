// What everybody writes and answers: seeded random words, different each time, so that a store that compresses, or a heap
// that shares equal strings, gains nothing that it would not gain from real text.

/** Characters of a user's message. */
export const messageLength = 200;

/** Pieces in which the model streams its answer, and characters of each. */
export const pieces = 20;
export const pieceLength = 20;
export const replyLength: number = pieces * pieceLength;

/** Characters that a tool answers. */
export const toolResultLength = 1000;

const source = createSource(1_000_000);
let cursor = 0;

export function userText(): string {
  return take(messageLength);
}

/** What a turn adds, as plain messages. */
export function newMessages(): readonly object[] {
  return [
    { role: 'user', content: [{ text: userText() }] },
    { role: 'model', content: [{ text: reply().text }] },
  ];
}

/** What a tool finds out. */
export function toolText(): string {
  return take(toolResultLength);
}

/** An answer of the model, whole and in pieces. */
export function reply(count: number = pieces): {
  readonly text: string;
  readonly chunks: readonly string[];
} {
  const start = move(count * pieceLength);
  const chunks = Array.from({ length: count }, (_, at) => {
    const from = start + at * pieceLength;
    return source.toString('latin1', from, from + pieceLength);
  });
  return { text: source.toString('latin1', start, start + count * pieceLength), chunks };
}

function take(length: number): string {
  const start = move(length);
  // A flat string of its own, as a decoder of network bytes makes them.
  return source.toString('latin1', start, start + length);
}

function move(length: number): number {
  if (cursor + length > source.length) cursor %= 7;
  const start = cursor;
  cursor += length;
  return start;
}

function createSource(length: number): Buffer {
  const random = xorshift(12_345);
  const letters = (): string => String.fromCharCode(97 + random(26));
  const words = Array.from({ length: 3000 }, () =>
    Array.from({ length: 2 + random(9) }, letters).join(''),
  );
  let text = '';
  // Some words are more frequent than others.
  while (text.length < length)
    text += `${words[Math.floor((random(3000) * random(3000)) / 3000)]} `;
  return Buffer.from(text.slice(0, length), 'latin1');
}

/** Random integers below a limit, from a seed. */
export function xorshift(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}
