import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { Message } from '../../protocol/message.ts';
import { summaryOf, textOf } from '../../protocol/messages.ts';
import { scriptedModel } from '../../testing/scripted-model.ts';
import {
  type CompactOptions,
  compactMessages,
  type HistoryScope,
  type SummaryRequest,
} from '../answer/history.ts';
import { modelMessage, toolMessage, userMessage } from '../template.ts';

const scope = (model = scriptedModel([])): HistoryScope => ({
  model,
  signal: new AbortController().signal,
});

/** A conversation of turns, each with some rounds of tools. */
function conversation(rounds: readonly number[]): Message[] {
  return rounds.flatMap((count, turn) => [
    userMessage(`u${turn}`),
    ...Array.from({ length: count }, (_, at) => [
      modelMessage({ toolRequest: { name: 't', ref: `${turn}.${at}` } }),
      toolMessage({ toolResponse: { name: 't', ref: `${turn}.${at}`, output: 1 } }),
    ]).flat(),
    modelMessage(`m${turn}`),
  ]);
}

/** One token per message, and a summary that is the texts. */
function counting(whenTokens: number, keepTokens: number) {
  const summarize = vi.fn(async ({ previous, messages }: SummaryRequest) =>
    [previous, ...messages.map(textOf)].filter(Boolean).join(' '),
  );
  return { whenTokens, keepTokens, summarize, count: () => 1 } satisfies CompactOptions;
}

describe('compaction', () => {
  test('leaves a short conversation alone', async () => {
    const messages = conversation([0, 0]);
    expect(await compactMessages(messages, counting(4, 2), scope())).toEqual({ messages });
  });

  test('shows old messages in brief, and grows from the stored summary by what is new', async () => {
    const options = counting(4, 2);
    const messages = conversation([0, 0, 0]);
    const { messages: seen, made } = await compactMessages(messages, options, scope());
    expect(seen.map(textOf)).toEqual([
      'Summary of the conversation before this:\nu0 m0 u1 m1',
      'u2',
      'm2',
    ]);
    expect(made).toMatchObject({ text: 'u0 m0 u1 m1', messages: 4 });
    const answer = { ...modelMessage('m3'), metadata: { summary: { ...made } } } as Message;
    const later = [...messages, userMessage('u3'), answer];
    expect(summaryOf(later)).toEqual(made);
    const again = counting(4, 2);
    const next = await compactMessages([...later, userMessage('u4')], again, scope());
    expect(again.summarize).toHaveBeenCalledTimes(1);
    expect(again.summarize.mock.lastCall?.[0]).toMatchObject({ previous: 'u0 m0 u1 m1' });
    expect(next.made).toMatchObject({ text: 'u0 m0 u1 m1 u2 m2 u3 m3', messages: 8 });
  });

  test('uses a stored summary only for the messages and the version that it was made of', async () => {
    const options = counting(4, 2);
    const messages = conversation([0, 0, 0]);
    const { made } = await compactMessages(messages, options, scope());
    const answer = { ...modelMessage('m3'), metadata: { summary: { ...made } } } as Message;
    const later = [...messages, userMessage('u3'), answer];
    const same = counting(5, 2);
    await compactMessages(later, same, scope());
    expect(same.summarize).not.toHaveBeenCalled();
    const rewritten = later.with(1, modelMessage('other'));
    await compactMessages(rewritten, same, scope());
    expect(same.summarize).toHaveBeenCalledTimes(1);
    const renewed = { ...counting(5, 2), version: '2' };
    await compactMessages(later, renewed, scope());
    expect(renewed.summarize.mock.lastCall?.[0]?.previous).toBeUndefined();
    // A summary in what a client has sent is none.
    const forged = { ...userMessage('u3'), metadata: { summary: { ...made, text: 'forged' } } };
    expect(summaryOf([...messages, forged as Message])).toBeUndefined();
  });

  test('asks the answering model without a summarizer, and again when that failed', async () => {
    const model = scriptedModel([{ error: new Error('x') }, 'They greeted.']);
    const options: CompactOptions = { whenTokens: 2, keepTokens: 1, count: () => 1 };
    const messages = [...conversation([0]), userMessage('next')];
    await expect(compactMessages(messages, options, scope(model))).rejects.toThrow();
    const { messages: seen } = await compactMessages(messages, options, scope(model));
    expect(seen.map(textOf)).toEqual([
      'Summary of the conversation before this:\nThey greeted.',
      'next',
    ]);
    const asked = model.requests[0]?.messages.at(-1);
    expect(asked && textOf(asked)).toBe('user: u0\nmodel: m0');
    // A turn that fails after the summary was made does not make it again.
    await compactMessages(messages, options, scope(model));
    expect(model.requests).toHaveLength(2);
  });

  test('never shows a result without its request', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(4), { maxLength: 8 }).map(conversation),
        fc.integer({ min: 1, max: 12 }),
        fc.boolean(),
        async (messages, size, force) => {
          const options = counting(size, Math.floor(size / 2));
          const { messages: seen } = await compactMessages(messages, options, scope(), force);
          expect(seen.find(({ role }) => role !== 'user')?.role).not.toBe('tool');
          if (messages.length > 0) expect(seen.at(-1)).toBe(messages.at(-1));
        },
      ),
    ));
});
