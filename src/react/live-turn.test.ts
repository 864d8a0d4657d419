import { expect, test } from 'vitest';
import type { Message } from '../protocol/message.ts';
import { textOf } from '../protocol/messages/text.ts';
import { LiveTurn } from './live-turn.ts';

const sent: Message[] = [{ role: 'user', content: [{ text: 'Hi' }] }];

test('text that streams is one part of one message', () => {
  const turn = new LiveTurn(sent);
  turn.add({ role: 'model', index: 0, content: [{ text: 'Hel' }] });
  turn.add({ role: 'model', index: 0, content: [{ text: 'lo' }] });
  expect(turn.messages).toEqual([...sent, { role: 'model', content: [{ text: 'Hello' }] }]);
  expect(textOf(turn.answer)).toBe('Hello');
});

test('reasoning and text stay apart', () => {
  const turn = new LiveTurn();
  turn.add({ content: [{ reasoning: 'Let me ' }] });
  turn.add({ content: [{ reasoning: 'think.' }, { text: 'Yes' }] });
  turn.add({ content: [{ text: '.' }] });
  expect(turn.messages).toEqual([
    { role: 'model', content: [{ reasoning: 'Let me think.' }, { text: 'Yes.' }] },
  ]);
  expect(textOf(turn.answer)).toBe('Yes.');
});

test('the messages before the one that grows stay the same objects', () => {
  const turn = new LiveTurn(sent);
  turn.add({ role: 'model', index: 0, content: [{ text: 'a' }] });
  turn.add({
    role: 'tool',
    index: 1,
    content: [{ toolResponse: { name: 't', ref: '1', output: 1 } }],
  });
  const before = turn.messages;
  turn.add({ role: 'model', index: 2, content: [{ text: 'b' }] });
  turn.add({ role: 'model', index: 2, content: [{ text: 'c' }] });
  expect(turn.messages.slice(0, 3)).toEqual(before);
  for (const [at, message] of before.entries()) expect(turn.messages[at]).toBe(message);
  expect(before).toHaveLength(3);
});

test('a later model message is a separate message', () => {
  const turn = new LiveTurn();
  turn.add({ role: 'model', index: 0, content: [{ text: 'a' }] });
  turn.add({ role: 'model', index: 2, content: [{ text: 'b' }] });
  expect(turn.messages.map(textOf)).toEqual(['a', 'b']);
});

test("a tool's partial output is replaced by later output", () => {
  const turn = new LiveTurn();
  const response = (ref: string, output: string, partial?: true) => ({
    toolResponse: { name: 't', ref, output },
    ...(partial && { metadata: { partial } }),
  });
  turn.add({ role: 'tool', index: 1, content: [response('1', '10 %', true)] });
  turn.add({ role: 'tool', index: 1, content: [response('2', 'other')] });
  turn.add({ role: 'tool', index: 1, content: [response('1', '50 %', true)] });
  turn.add({ role: 'tool', index: 1, content: [response('1', 'done')] });
  expect(turn.messages[0]?.content).toEqual([response('1', 'done'), response('2', 'other')]);
});

test('after a takeover what came after the last tools comes again', () => {
  const turn = new LiveTurn(sent);
  turn.start(0);
  turn.add({ role: 'model', index: 0, content: [{ toolRequest: { name: 't', ref: '1' } }] });
  turn.add({
    role: 'tool',
    index: 1,
    content: [{ toolResponse: { name: 't', ref: '1', output: 1 } }],
  });
  turn.add({ role: 'model', index: 2, content: [{ text: 'lost' }] });
  turn.reset();
  expect(turn.messages.map(({ role }) => role)).toEqual(['user', 'model', 'tool']);
  turn.add({ role: 'model', index: 0, content: [{ text: 'kept' }] });
  expect(textOf(turn.messages.at(-1))).toBe('kept');
  expect(turn.messages).toHaveLength(4);
});

test('a turn that starts over leaves nothing of its first attempt', () => {
  const turn = new LiveTurn(sent);
  turn.start(3);
  turn.add({ content: [{ text: 'lost' }] });
  turn.reset();
  turn.start(3);
  turn.add({ content: [{ text: 'kept' }] });
  expect(turn.messages.map(textOf)).toEqual(['Hi', 'kept']);
});

test('the turns of one run follow each other', () => {
  const turn = new LiveTurn();
  for (const [index, text] of ['one', 'two'].entries()) {
    turn.start(index);
    turn.add({ role: 'model', index: 0, content: [{ text }] });
  }
  expect(turn.messages.map(textOf)).toEqual(['one', 'two']);
});
