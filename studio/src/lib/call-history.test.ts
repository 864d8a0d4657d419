import { expect, test } from 'vitest';
import type { Message } from '../../../src/client/index.ts';
import { callBefore, newMessages } from './call-history.ts';

function said(role: Message['role'], text: string, metadata?: Message['metadata']): Message {
  return { role, content: [{ text }], ...(metadata && { metadata }) };
}

test('new messages are those that the call before neither sent nor received', () => {
  const before = {
    model: 'm',
    request: { messages: [said('system', 'one'), said('user', 'hello')] },
    response: { message: said('model', 'hi'), finishReason: 'stop' },
  };
  const call = {
    model: 'm',
    request: {
      messages: [
        said('system', 'another'),
        said('user', 'hello'),
        said('model', 'hi', { snapshotId: 's' }),
        said('user', 'hello'),
      ],
    },
  };
  expect([...newMessages(call, before)]).toEqual([0, 3]);
  expect([...newMessages(call, undefined)]).toEqual([]);
});

test('the call before is the latest of the same session, not one of a sub-agent', () => {
  const span = (spanId: string, parentId?: string, session?: string) => ({
    traceId: 't',
    spanId,
    ...(parentId !== undefined && { parentId }),
    name: spanId,
    startedAt: 0,
    attributes: session === undefined ? {} : { 'waymark.session.id': session },
    ...(spanId.startsWith('chat') && { hasContent: true as const }),
  });
  const spans = [
    span('turn', undefined, 'a'),
    span('chat 1', 'turn'),
    span('tool', 'turn'),
    span('inner', 'tool', 'b'),
    span('chat 2', 'inner'),
    span('chat 3', 'turn'),
  ];
  const at = (name: string) => spans.filter(({ spanId }) => spanId === name)[0] ?? span('none');
  expect(callBefore(spans, at('chat 3'))?.spanId).toBe('chat 1');
  expect(callBefore(spans, at('chat 2'))).toBeUndefined();
  expect(callBefore(spans, at('chat 1'))).toBeUndefined();
});
