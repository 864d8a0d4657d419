import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toJson } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import { History, historyDelta } from './history.ts';

const pool = Array.from(
  { length: 8 },
  (_, n) => toJson({ role: 'user', content: [{ text: `${n}` }] }, 'm') as unknown as Message,
);
const pick = (...places: number[]): Message[] => places.map((place) => pool[place] as Message);

describe('what is new in a history', () => {
  test('is everything when there was nothing', () => {
    const messages = pick(0, 1);
    expect(historyDelta(undefined, History.of(messages))).toEqual({ kind: 'append', messages });
  });

  test('is what was appended', () => {
    const base = History.of(pick(0, 1));
    const delta = historyDelta(base, base.append(pick(2)));
    expect(delta).toEqual({ kind: 'append', messages: pick(2) });
    expect(historyDelta(base, base)).toEqual({ kind: 'append', messages: [] });
  });

  test('after a trim is one range and what came behind it', () => {
    const base = History.of(pick(0, 1, 2, 3));
    const next = base.replace(pick(2, 3)).append(pick(4, 5));
    expect(historyDelta(base, next)).toEqual({
      kind: 'rewrite',
      pieces: [
        { kind: 'kept', from: 2, to: 4 },
        { kind: 'new', messages: pick(4, 5) },
      ],
    });
  });

  test('a message that stands in the base twice does not break a range', () => {
    const base = History.of(pick(0, 1, 0, 1, 0));
    expect(historyDelta(base, base.replace(pick(1, 0, 1)))).toEqual({
      kind: 'rewrite',
      pieces: [
        { kind: 'kept', from: 3, to: 5 },
        { kind: 'kept', from: 3, to: 4 },
      ],
    });
  });

  test('begins with what is common, also where those messages stand in the base again', () => {
    const base = History.of(pick(0, 1, 0, 1));
    expect(historyDelta(base, base.replace(pick(0, 1, 2, 0)))).toEqual({
      kind: 'rewrite',
      pieces: [
        { kind: 'kept', from: 0, to: 2 },
        { kind: 'new', messages: pick(2) },
        { kind: 'kept', from: 2, to: 3 },
      ],
    });
  });

  test('put together with the base it is always the new history', () => {
    const messages = fc.array(fc.nat(7), { maxLength: 12 }).map((places) => pick(...places));
    fc.assert(
      fc.property(messages, messages, (before, after) => {
        const base = History.of(before);
        const delta = historyDelta(base, base.replace(after));
        const whole =
          delta.kind === 'append'
            ? [...before, ...delta.messages]
            : delta.pieces.flatMap((piece) =>
                piece.kind === 'new' ? piece.messages : before.slice(piece.from, piece.to),
              );
        expect(whole).toEqual(after);
      }),
    );
  });

  test('a window that slides over a long history is a few pieces', () => {
    let history = History.of(pick(0, 1, 2, 3));
    for (let n = 0; n < 50; n++) {
      const next = history.replace([...history.toArray().slice(-4), ...pick(n % 8)]);
      const delta = historyDelta(history, next);
      if (delta.kind === 'rewrite') expect(delta.pieces.length).toBeLessThanOrEqual(2);
      history = next;
    }
  });
});
