import { expect, test } from 'vitest';
import { cacheText } from './usage.ts';

test.each([
  [{ inputTokens: 9 }, undefined],
  [{ cachedInputTokens: 0 }, '0 read'],
  [{ cachedInputTokens: 900, expectedCachedTokens: 950 }, '900 of about 950 read'],
  [
    { cachedInputTokens: 0, expectedCachedTokens: 950, cacheWriteTokens: 50 },
    '0 of about 950 read · 50 written',
  ],
])('the cache of %j is told as %j', (usage, text) => {
  expect(cacheText(usage)).toBe(text);
});
