import type { ModelRef } from 'waymark';
import { scriptedModel } from 'waymark/testing';

// To use a real model, run `npm install @ai-sdk/openai`, set OPENAI_API_KEY, and replace the script below with these lines:
//
//   import { openai } from '@ai-sdk/openai';
//   export const model = openai('gpt-5');
//
// Other providers: @ai-sdk/anthropic (ANTHROPIC_API_KEY), @ai-sdk/google (GOOGLE_GENERATIVE_AI_API_KEY).

/** Plays a script, so that the project runs without a key and offline. */
export const model: ModelRef = scriptedModel({
  patterns: [
    [
      /refund (?:order )?(\w+)/i,
      ([, order = '7']) => ({ toolCalls: [{ name: 'refund', input: { order, amount: 40 } }] }),
    ],
    [
      /order (\w+)/i,
      ([, order = '7']) => ({ toolCalls: [{ name: 'look_up_order', input: { order } }] }),
    ],
  ],
  afterTools: (_, results) => `Done: ${JSON.stringify(results)}`,
  otherwise: 'Hello! Ask me "Where is order 7?", or say "Refund order 7".',
});
