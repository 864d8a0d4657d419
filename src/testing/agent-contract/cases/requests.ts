import type { ContractCase } from '../case.ts';

const say = (text: string, requestId: string, more: { readonly detach?: boolean } = {}) => ({
  message: { role: 'user' as const, content: [{ text }] },
  requestId,
  ...more,
});

/** Retries under a request id. */
export const requestCases: readonly ContractCase[] = [
  {
    name: 'a request that is sent again gets the same output, also from another process, and nothing runs twice',
    rules: ['S210', 'S211'],
    agent: 'chat',
    script: [{ chunks: ['on', 'ce'], usage: { totalTokens: 7 } }, 'later'],
    steps: [
      { do: 'run', input: say('a', 'r1'), as: 'first' },
      { do: 'run', input: 'b', at: { sessionId: '$first.sessionId' }, as: 'second' },
      {
        do: 'run',
        input: say('a', 'r1'),
        output: {
          sessionId: '$first.sessionId',
          snapshotId: '$first.snapshotId',
          snapshotIds: ['$first.snapshotId'],
          finishReason: 'stop',
          usage: { totalTokens: 7 },
          message: { role: 'model', content: [{ text: 'once' }] },
          error: { $absent: true },
        },
      },
      { do: 'run', input: say('other', 'r1'), refused: { status: 'INVALID_ARGUMENT' } },
      {
        do: 'run',
        input: say('a', 'r1'),
        at: { sessionId: 'another' },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'getSession',
        sessionId: '$first.sessionId',
        session: {
          headId: '$second.snapshotId',
          state: { messages: { $told: ['user: a', 'model: once', 'user: b', 'model: later'] } },
        },
      },
      { do: 'restart' },
      {
        do: 'run',
        input: say('a', 'r1'),
        output: {
          snapshotId: '$first.snapshotId',
          message: { role: 'model', content: [{ text: 'once' }] },
        },
      },
    ],
  },
  {
    name: 'a stream under the id of a turn that is over tells that turn again',
    rules: ['S215'],
    agent: 'chat',
    script: [{ chunks: ['on', 'ce'] }],
    steps: [
      { do: 'run', input: say('a', 'r1'), as: 'first' },
      {
        do: 'stream',
        input: say('a', 'r1'),
        output: { snapshotId: '$first.snapshotId' },
        chunks: [
          {
            turnStart: {
              sessionId: '$first.sessionId',
              snapshotId: '$first.snapshotId',
              turnIndex: 0,
            },
          },
          { modelChunk: { role: 'model', content: [{ text: 'once' }] } },
          {
            snapshotCreated: '$first.snapshotId',
            turnEnd: { finishReason: 'stop', snapshotId: '$first.snapshotId' },
          },
        ],
      },
    ],
  },
  {
    name: 'a repeated request to detach returns the same run',
    rules: ['S210'],
    agent: 'chat',
    script: ['done'],
    steps: [
      { do: 'run', input: say('a', 'r1', { detach: true }), as: 'first' },
      { do: 'wait', id: '$first.snapshotId', snapshot: { status: 'succeeded' } },
      {
        do: 'run',
        input: say('a', 'r1', { detach: true }),
        output: { snapshotId: '$first.snapshotId', finishReason: 'detached' },
      },
    ],
  },
  {
    name: 'a rejected turn does not consume its request id; on a connection, a finished turn is replayed',
    rules: ['S212', 'S210'],
    agent: 'chat',
    script: ['one', 'two'],
    steps: [
      {
        do: 'run',
        input: {
          resume: { respond: [{ toolResponse: { name: 'x', ref: 'x', output: 1 } }] },
          requestId: 'r1',
        },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      { do: 'run', input: say('a', 'r1'), at: { sessionId: 's' }, as: 'first' },
      { do: 'open', connection: 'c', at: { sessionId: 's' } },
      { do: 'send', connection: 'c', input: say('a', 'r1') },
      {
        do: 'receive',
        connection: 'c',
        until: { turnEnd: { snapshotId: '$first.snapshotId' } },
      },
      { do: 'send', connection: 'c', input: say('b', 'r2') },
      { do: 'receive', connection: 'c', until: { turnEnd: { finishReason: 'stop' } } },
      {
        do: 'output',
        connection: 'c',
        output: { message: { role: 'model', content: [{ text: 'two' }] } },
      },
    ],
  },
];
