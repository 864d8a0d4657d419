import { expect, test } from 'vitest';
import type { Message } from '../../protocol/message.ts';
import { type ModelRequest, model } from '../model.ts';
import { callBound } from './price.ts';

const priced = model(
  {
    name: 'm',
    price: ({ inputTokens = 0, outputTokens = 0, cacheWriteTokens = 0 }) => ({
      USD: inputTokens * 2 + outputTokens * 8 + cacheWriteTokens,
    }),
  },
  () => Promise.reject(new Error('not called')),
);

function request(change: Partial<ModelRequest> = {}): ModelRequest {
  const messages: Message[] = [{ role: 'user', content: [{ text: 'x'.repeat(2_000) }] }];
  return { messages, tools: [], config: { maxOutputTokens: 500 }, ...change };
}

test('S691 the bound of a call is two bytes a token and `maxOutputTokens`, at the highest price', () => {
  const { tokens, cost, isKnown } = callBound(priced, request());
  expect(isKnown).toBe(true);
  expect(tokens).toBeGreaterThanOrEqual(1_500);
  expect(tokens).toBeLessThan(1_550);
  // All of the input may be written to a cache.
  expect(cost).toEqual({ USD: (tokens - 500) * 3 + 500 * 8 });
  const umlauts: Message = { role: 'user', content: [{ text: 'ü'.repeat(2_000) }] };
  expect(callBound(priced, request({ messages: [umlauts] })).tokens).toBeGreaterThan(2_500);
});

test('S693 files, tools of the provider and a missing `maxOutputTokens` leave the bound unknown', () => {
  const media = { media: { url: 'data:image/png;base64,AAAA' } };
  const file: Message = { role: 'user', content: [media] };
  const result: Message = {
    role: 'tool',
    content: [{ toolResponse: { name: 't', content: [media] } }],
  };
  const search = { name: 's', inputSchema: {}, provider: { id: 'p.search', args: {} } };
  expect(callBound(priced, request({ config: {} })).isKnown).toBe(false);
  expect(callBound(priced, request({ messages: [file] })).isKnown).toBe(false);
  expect(callBound(priced, request({ messages: [result] })).isKnown).toBe(false);
  expect(callBound(priced, request({ tools: [search] })).isKnown).toBe(false);
  expect(callBound(priced, request({ config: {} })).tokens).toBeGreaterThan(4_096);
});
