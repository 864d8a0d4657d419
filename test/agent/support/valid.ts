import { expect } from 'vitest';
import type { Message } from '../../../src/protocol/message.ts';

/** Fails unless every provider would take this conversation: no request without its response, nothing empty, no stranger. */
export function expectValid(messages: readonly Message[]): void {
  messages.forEach(({ role, content }, place) => {
    expect(content.length, `message ${place} is empty`).toBeGreaterThan(0);
    if (role === 'tool') {
      expect(messages[place - 1]?.role, `tool message ${place} has no request before it`).toBe(
        'model',
      );
    }
    const requests = content.flatMap((part) =>
      'toolRequest' in part ? [`${part.toolRequest.name} ${part.toolRequest.ref}`] : [],
    );
    if (requests.length === 0) return;
    expect(role, `a request in message ${place}`).toBe('model');
    const responses = (messages[place + 1]?.content ?? []).flatMap((part) =>
      'toolResponse' in part ? [`${part.toolResponse.name} ${part.toolResponse.ref}`] : [],
    );
    expect(messages[place + 1]?.role, `message ${place} has open requests`).toBe('tool');
    expect(responses.toSorted(), `responses to message ${place}`).toEqual(requests.toSorted());
  });
}
