import { expect, test } from 'vitest';
import type { Message } from '../protocol/message.ts';
import { textOf } from '../protocol/messages.ts';
import { LiveTurn, steeredId } from './live-turn.ts';

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

const tool = { toolResponse: { name: 't', ref: '1', output: 1 } };

/** A turn that has called a tool and was steered after it; then the model speaks again. */
function steeredTurn(): LiveTurn {
  const turn = new LiveTurn(sent);
  turn.start(0);
  turn.steer(added('left'));
  turn.add({ role: 'model', index: 0, content: [{ toolRequest: { name: 't', ref: '1' } }] });
  turn.add({ role: 'tool', index: 1, content: [tool] });
  turn.steer(added('steered'));
  turn.add({ role: 'model', index: 3, content: [{ text: 'lost' }] });
  return turn;
}

const added = (id: string): Message => ({
  role: 'user',
  content: [{ text: id }],
  metadata: { steered: { id, runId: 'r' } },
});

test.each([
  [0, ['user', 'left']],
  [2, ['user', 'left', 'model', 'tool']],
  [3, ['user', 'left', 'model', 'tool', 'steered']],
  [4, ['user', 'left', 'model', 'tool', 'steered', 'model']],
  // A server of an earlier version does not tell the index.
  [undefined, ['user', 'left', 'model', 'tool', 'steered']],
])('S732 after a takeover, messages from index %s on are dropped', (index, kept) => {
  const turn = steeredTurn();
  turn.reset(index === undefined ? {} : { turnIndex: 0, index });
  const shown = turn.messages.map((message) => steeredId(message) ?? message.role);
  expect(shown).toEqual(kept);
  turn.add({ role: 'model', index: index ?? 3, content: [{ text: 'new' }] });
  expect(turn.messages).toHaveLength(kept.length + 1);
  expect(textOf(turn.messages.at(-1))).toBe('new');
});

test('S732 a takeover of an earlier turn drops the turns after it', () => {
  const turn = new LiveTurn(sent);
  for (const turnIndex of [4, 5]) {
    turn.start(turnIndex);
    turn.add({ index: 0, content: [{ text: `turn ${turnIndex}` }] });
  }
  turn.reset({ turnIndex: 4, index: 1 });
  expect(turn.messages.map(textOf)).toEqual(['Hi', 'turn 4']);
});

test('a turn that starts over leaves nothing of its first attempt', () => {
  const turn = new LiveTurn(sent);
  turn.start(3);
  turn.add({ content: [{ text: 'lost' }] });
  turn.reset({ turnIndex: 3, index: 0 });
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
