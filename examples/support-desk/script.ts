import type { ModelRef } from 'waymark';
import { scriptedModel } from 'waymark/testing';

/** Plays a script, so that the desk works without a key and offline. */
export function deskScript(): ModelRef {
  return scriptedModel(
    {
      patterns: [
        [
          /refund (\d+)[^\d]*(\d+)/i,
          ([, euros, order = '7']) => ({
            toolCalls: [{ name: 'refund', input: { order, euros: Number(euros) } }],
          }),
        ],
        [
          /order (\d+)/i,
          ([, order = '7']) => ({ toolCalls: [{ name: 'look_up_order', input: { order } }] }),
        ],
      ],
      afterTools: (_, [result]) => sayResult(result),
      otherwise: 'Ask me “Where is order 7?”, or say “Refund 15 of order 7”.',
    },
    { name: 'script' },
  );
}

function sayResult(result: unknown): string {
  if (typeof result !== 'object' || result === null) return String(result);
  if ('refunded' in result && 'payment' in result) {
    return `Refunded ${result.refunded} €, payment ${result.payment}.`;
  }
  if ('item' in result && 'customer' in result && 'paid' in result) {
    return `${result.customer} bought “${result.item}” and paid ${result.paid} €.`;
  }
  return JSON.stringify(result);
}
