import { expect, test } from 'vitest';
import type { Message, ToolRequestPart } from '../protocol/message.ts';
import { pendingInterrupts, toResume } from './interrupts.ts';

const user: Message = { role: 'user', content: [{ text: 'Book it' }] };
const asking = (
  ref: string,
  interrupt: ToolRequestPart['metadata'] = { interrupt: true },
): ToolRequestPart => ({
  toolRequest: { name: 'book', ref, input: { what: ref } },
  metadata: interrupt,
});

test('the interrupted requests a conversation ends with wait', () => {
  const messages: Message[] = [
    user,
    {
      role: 'model',
      content: [
        { text: 'One moment' },
        asking('1', { interrupt: { price: 4 } }),
        asking('2', { pendingOutput: 0 }),
        asking('3'),
      ],
    },
  ];
  expect(pendingInterrupts(messages)).toMatchObject([
    { key: 'book 1', name: 'book', input: { what: '1' }, data: { price: 4 } },
    { key: 'book 3', data: true },
  ]);
});

test('one that was answered, or followed by something else, does not wait', () => {
  const model: Message = { role: 'model', content: [asking('1')] };
  const answered: Message = {
    role: 'tool',
    content: [{ toolResponse: { name: 'book', ref: '1', output: 0 } }],
  };
  expect(pendingInterrupts([user, model, answered])).toEqual([]);
  expect(pendingInterrupts([user, model, user])).toEqual([]);
  expect(pendingInterrupts([user, { role: 'model', content: [{ text: 'Done' }] }])).toEqual([]);
  expect(pendingInterrupts([])).toEqual([]);
});

test('a tool that asked again after a restart waits with what it asks now', () => {
  const messages: Message[] = [
    user,
    { role: 'model', content: [asking('1', { interrupt: 'sure?' })] },
    { role: 'tool', content: [asking('1', { interrupt: 'really sure?' })] },
  ];
  expect(pendingInterrupts(messages)).toMatchObject([{ data: 'really sure?' }]);
});

test('only when all are answered is there something to send', () => {
  const [one, two] = pendingInterrupts([
    user,
    { role: 'model', content: [asking('1'), asking('2')] },
  ]);
  if (!one || !two) throw new Error('two interrupts expected');
  const first = { ...one, answer: { type: 'respond', output: null } } as const;
  const second = { ...two, answer: { type: 'restart', resumed: { by: 'me' } } } as const;
  expect(toResume([first, two])).toBeUndefined();
  expect(toResume([first, second])).toEqual({
    respond: [{ toolResponse: { name: 'book', ref: '1', output: null } }],
    restart: [
      {
        toolRequest: { name: 'book', ref: '2', input: { what: '2' } },
        metadata: { resumed: { by: 'me' } },
      },
    ],
  });
});

test('S161: an interrupt of false waits for nobody, other values that look like nothing do', () => {
  const content = [false, 0, '', null].map((interrupt, at) => asking(`${at}`, { interrupt }));
  const waiting = pendingInterrupts([user, { role: 'model', content }]);
  expect(waiting.map(({ data }) => data)).toEqual([0, '', null]);
});
