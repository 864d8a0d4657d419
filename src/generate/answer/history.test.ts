import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { Message } from '../../protocol/message.ts';
import { scriptedModel } from '../../testing/scripted-model.ts';
import { modelMessage, toolMessage, userMessage } from '../template.ts';
import { estimateTokens, type HistoryScope, lastMessages, tokenBudget } from './history.ts';

const scope = (model = scriptedModel([])): HistoryScope => ({
  model,
  signal: new AbortController().signal,
});

const request = (ref: string): Message => modelMessage({ toolRequest: { name: 't', ref } });
const result = (ref: string): Message =>
  toolMessage({ toolResponse: { name: 't', ref, output: 1 } });

/** A conversation of turns, each with some rounds of tools. */
function conversation(rounds: readonly number[]): Message[] {
  return rounds.flatMap((count, turn) => [
    userMessage(`u${turn}`),
    ...Array.from({ length: count }, (_, at) => [
      request(`${turn}.${at}`),
      result(`${turn}.${at}`),
    ]).flat(),
    modelMessage(`m${turn}`),
  ]);
}

const conversations = fc.array(fc.nat(4), { maxLength: 8 }).map(conversation);

describe('the last messages', () => {
  test('are at most so many, from a user message on', async () => {
    const messages = conversation([0, 0, 1]);
    expect(await lastMessages(5)(messages, scope())).toEqual(messages.slice(4));
    expect(await lastMessages(6)(messages, scope())).toEqual(messages.slice(2));
    expect(await lastMessages(100)(messages, scope())).toEqual(messages);
  });

  test('go back to the user when a turn is longer', async () => {
    const messages = [userMessage('x'), request('1'), result('1')];
    expect(await lastMessages(1)(messages, scope())).toEqual(messages);
  });

  test('always begin with a user and end with the end', () =>
    fc.assert(
      fc.asyncProperty(conversations, fc.nat(20), async (messages, count) => {
        const seen = await lastMessages(count)(messages, scope());
        expect(messages.slice(messages.length - seen.length)).toEqual(seen);
        if (seen.length > 0) expect(seen[0]?.role).toBe('user');
      }),
    ));
});

describe('a token budget', () => {
  test('takes what fits, from the end, and counts each message once', async () => {
    const count = vi.fn(() => 10);
    const select = tokenBudget({ maxTokens: 40, count });
    const messages = conversation([0, 0, 0]);
    expect(await select(messages, scope())).toEqual(messages.slice(2));
    expect(await select(messages, scope())).toEqual(messages.slice(2));
    expect(count).toHaveBeenCalledTimes(5);
  });

  test('shows what the user said last also when it is too long', async () => {
    const messages = [...conversation([0]), userMessage('x'.repeat(1000))];
    expect(await tokenBudget({ maxTokens: 10 })(messages, scope())).toEqual(messages.slice(2));
  });

  test('estimates four characters a token without a counter', () => {
    expect(estimateTokens(userMessage('x'.repeat(400)))).toBeGreaterThanOrEqual(100);
    expect(estimateTokens(userMessage('x'.repeat(400)))).toBeLessThan(110);
  });
});
