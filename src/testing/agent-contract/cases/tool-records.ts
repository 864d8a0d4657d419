import type { ContractCase } from '../case.ts';

const note = (text: string, ref: string) => ({ name: 'note', ref, input: { text } });
const transfer = { name: 'transfer', ref: 't', input: { to: 'Ada' } };

const noted = (text: string, all: string, place: number) => ({
  custom: [{ op: 'add', path: `/notes/${place}`, value: text }],
  artifacts: { items: [{ artifact: { name: 'notes.txt', parts: [{ text: all }] } }] },
});

/** What tool calls did, stored with their responses. */
export const toolRecordCases: readonly ContractCase[] = [
  {
    name: 'the change that each tool call made to the state is stored with its response',
    rules: ['S420'],
    agent: 'helper',
    script: [{ toolCalls: [note('one', '1'), note('two', '2')] }, 'Noted.'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'restart' },
      {
        do: 'getSession',
        sessionId: '$first.sessionId',
        session: {
          state: {
            messages: [
              { role: 'user' },
              { role: 'model' },
              {
                role: 'tool',
                content: [
                  { toolResponse: { ref: '1' }, metadata: { recorded: noted('one', 'one', 0) } },
                  {
                    toolResponse: { ref: '2' },
                    metadata: { recorded: noted('two', 'one\ntwo', 1) },
                  },
                ],
              },
              { role: 'model' },
            ],
          },
        },
      },
    ],
  },
  {
    name: 'a call that changes nothing stores its key and time; a restarted one stores what it was restarted with',
    rules: ['S420', 'S421'],
    agent: 'teller',
    script: [
      { toolCalls: [{ name: 'nothing', ref: 'n', input: { kind: 'zero' } }] },
      { toolCalls: [transfer] },
      'Done.',
    ],
    steps: [
      { do: 'run', input: 'pay', as: 'asked', output: { finishReason: 'interrupted' } },
      {
        do: 'run',
        input: { resume: { restart: [{ toolRequest: transfer, metadata: { resumed: 'yes' } }] } },
        at: { sessionId: '$asked.sessionId' },
      },
      {
        do: 'getSession',
        sessionId: '$asked.sessionId',
        session: {
          state: {
            messages: [
              { role: 'user' },
              { role: 'model' },
              {
                role: 'tool',
                content: [
                  {
                    metadata: {
                      recorded: {
                        call: { key: { $any: true }, at: { $any: true } },
                        custom: { $absent: true },
                      },
                    },
                  },
                ],
              },
              { role: 'model' },
              { role: 'tool', content: [{ metadata: { recorded: { resumed: 'yes' } } }] },
              { role: 'model' },
            ],
          },
        },
      },
    ],
  },
  {
    name: 'a state transform also hides what tool calls did, and chunks never tell it',
    rules: ['S422'],
    agent: 'shy',
    script: [{ toolCalls: [note('secret', '1')] }, 'Noted.'],
    steps: [
      {
        do: 'stream',
        input: 'a',
        as: 'first',
        chunks: [
          { turnStart: { $any: true } },
          { modelChunk: { content: [{ toolRequest: { name: 'note' } }] } },
          { modelChunk: { role: 'tool', content: [{ metadata: { $absent: true } }] } },
          { modelChunk: { $any: true } },
          { turnEnd: { $any: true } },
        ],
      },
      {
        do: 'getSession',
        sessionId: '$first.sessionId',
        session: {
          state: {
            messages: [
              { role: 'user' },
              { role: 'model' },
              { role: 'tool', content: [{ metadata: { $absent: true } }] },
              { role: 'model' },
            ],
          },
        },
      },
    ],
  },
];
