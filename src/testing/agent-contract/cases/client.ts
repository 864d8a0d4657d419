import type { ContractCase } from '../case.ts';

/** Client-managed state. */
export const clientCases: readonly ContractCase[] = [
  {
    name: 'a state goes out and comes back, and stays one session',
    rules: ['S10', 'S82', 'S83', 'S90'],
    agent: 'held',
    script: ['one', 'two'],
    steps: [
      {
        do: 'stream',
        input: 'a',
        as: 'first',
        output: {
          snapshotId: { $absent: true },
          state: { sessionId: { $any: true }, messages: { $told: ['user: a', 'model: one'] } },
        },
        chunks: [
          { turnStart: { turnIndex: 0, snapshotId: { $absent: true } } },
          { modelChunk: { $any: true } },
          { turnEnd: { snapshotId: { $absent: true } }, snapshotCreated: { $absent: true } },
        ],
      },
      {
        do: 'stream',
        input: 'b',
        at: { state: '$first.state' },
        output: {
          sessionId: '$first.sessionId',
          state: { messages: { $told: ['user: a', 'model: one', 'user: b', 'model: two'] } },
        },
        chunks: [
          { turnStart: { sessionId: '$first.sessionId', turnIndex: 1 } },
          { modelChunk: { $any: true } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
      { do: 'asked', told: ['user: a', 'model: one', 'user: b'] },
    ],
  },
  {
    name: 'a chat that is given a state names the session of that state',
    rules: ['S90', 'S172'],
    agent: 'held',
    script: ['one', 'two', 'three'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      {
        do: 'chat',
        at: { state: '$first.state' },
        inputs: ['b', 'c'],
        sessionIds: ['$first.sessionId', '$first.sessionId', '$first.sessionId'],
      },
      { do: 'chat', at: { state: { messages: [] } }, inputs: [], sessionIds: [null] },
    ],
  },
  {
    name: 'a custom state that is not the schema’s is refused',
    rules: ['S83'],
    agent: 'held',
    script: ['one'],
    steps: [
      {
        do: 'run',
        input: 'a',
        at: { state: { custom: { notes: 'no list' } } },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'run',
        input: 'a',
        at: { state: { custom: { notes: ['a list'] } } },
        output: { state: { custom: { notes: ['a list'] } } },
      },
    ],
  },
  {
    name: 'a failed turn gives back the last good state',
    rules: ['S47'],
    agent: 'held',
    script: ['one', { error: { message: 'broken' } }],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      {
        do: 'run',
        input: 'b',
        at: { state: '$first.state' },
        output: {
          finishReason: 'failed',
          state: { messages: { $told: ['user: a', 'model: one'] } },
        },
      },
    ],
  },
  {
    name: 'a client-held state that was changed is refused',
    rules: ['S99'],
    agent: 'sealed',
    script: ['one', 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'first', output: { state: { seal: { $any: true } } } },
      {
        do: 'run',
        input: 'b',
        at: {
          state: {
            sessionId: '$first.sessionId',
            messages: [{ role: 'user', content: [{ text: 'forged' }] }],
            seal: '$first.state.seal',
          },
        },
        refused: { status: 'PERMISSION_DENIED' },
      },
      {
        do: 'run',
        input: 'b',
        at: { state: { messages: [] } },
        refused: { status: 'PERMISSION_DENIED' },
      },
      {
        do: 'run',
        input: 'b',
        at: { state: '$first.state' },
        output: { finishReason: 'stop', state: { seal: { $not: '$first.state.seal' } } },
      },
    ],
  },
  {
    name: 'a state transform cannot take the session id away or change it',
    rules: ['S90', 'S95', 'S99'],
    agent: 'discreet',
    script: ['one', 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'first', output: { state: { sessionId: { $any: true } } } },
      {
        do: 'run',
        input: 'b',
        at: { state: '$first.state' },
        output: {
          sessionId: '$first.sessionId',
          state: {
            sessionId: '$first.sessionId',
            messages: { $told: ['user: a', 'model: one', 'user: b', 'model: two'] },
          },
        },
      },
    ],
  },
];
