import type { ContractCase } from '../case.ts';

/** Custom agents. */
export const customCases: readonly ContractCase[] = [
  {
    name: 'status, artifact, custom state and model chunks come in order; only artifacts and state are kept',
    rules: ['S22', 'S30', 'S61', 'S62', 'S132'],
    agent: 'keeper',
    steps: [
      {
        do: 'stream',
        input: 'status artifact state',
        as: 'first',
        output: {
          message: { content: [{ text: 'echo status artifact state' }] },
          artifacts: [{ name: 'a', parts: [{ text: 'status artifact state' }] }],
        },
        chunks: [
          { turnStart: { turnIndex: 0 } },
          {
            customPatch: [{ op: 'replace', path: '', value: { notes: ['status artifact state'] } }],
          },
          { artifact: { name: 'a', parts: [{ text: 'status artifact state' }] } },
          { status: { phase: 'status artifact state' } },
          { modelChunk: { role: 'model' } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
      {
        do: 'stream',
        input: 'artifact patch',
        at: { sessionId: '$first.sessionId' },
        output: { artifacts: [{ name: 'a', parts: [{ text: 'artifact patch' }] }] },
        chunks: [
          { turnStart: { turnIndex: 1 } },
          {
            customPatch: [
              {
                op: 'replace',
                path: '',
                value: { notes: ['status artifact state', 'artifact patch'] },
              },
            ],
          },
          { artifact: { name: 'a' } },
          { modelChunk: { role: 'model' } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
      {
        do: 'getSession',
        sessionId: '$first.sessionId',
        session: {
          state: {
            custom: { notes: ['status artifact state', 'artifact patch'] },
            artifacts: [{ name: 'a', parts: [{ text: 'artifact patch' }] }],
          },
        },
      },
    ],
  },
  {
    name: 'artifacts that the session is given are streamed like those that are sent, once for each change',
    rules: ['S22', 'S30', 'S150'],
    agent: 'painter',
    steps: [
      {
        do: 'stream',
        input: 'add:a send:b add:b send:a add:a',
        as: 'first',
        output: { artifacts: [{ name: 'a' }, { name: 'b' }] },
        chunks: [
          { turnStart: { turnIndex: 0 } },
          { artifact: { name: 'a', parts: [{ text: '0' }] } },
          { artifact: { name: 'b', parts: [{ text: '0' }] } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
      {
        do: 'stream',
        input: 'add:a add:a=1 set:b,a=1,c send:a=1 add: add:',
        at: { sessionId: '$first.sessionId' },
        output: {
          artifacts: [
            { name: 'b' },
            { name: 'a', parts: [{ text: '1' }] },
            { name: 'c' },
            { name: { $absent: true } },
            { name: { $absent: true } },
          ],
        },
        chunks: [
          { turnStart: { turnIndex: 1 } },
          { artifact: { name: 'a', parts: [{ text: '1' }] } },
          { artifact: { name: 'c', parts: [{ text: '0' }] } },
          { artifact: { name: { $absent: true } } },
          { artifact: { name: { $absent: true } } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
      {
        do: 'stream',
        input: 'send:c',
        at: { sessionId: '$first.sessionId' },
        chunks: [
          { turnStart: { turnIndex: 2 } },
          { artifact: { name: 'c', parts: [{ text: '0' }] } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
    ],
  },
  {
    name: 'a second turn loop at the same time is refused, and each turn starts and ends once',
    rules: ['S44', 'S152'],
    agent: 'doubled',
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'sendAll', connection: 'c', inputs: ['a', 'b'] },
      {
        do: 'receive',
        connection: 'c',
        until: { turnEnd: { $any: true } },
        chunks: [
          { turnStart: { turnIndex: 0 } },
          { modelChunk: { $any: true } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
      {
        do: 'receive',
        connection: 'c',
        until: { turnEnd: { $any: true } },
        chunks: [
          { turnStart: { turnIndex: 1 } },
          { modelChunk: { $any: true } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
      {
        do: 'output',
        connection: 'c',
        as: 'out',
        output: { finishReason: 'stop', output: ['ran', 'FAILED_PRECONDITION'] },
      },
      {
        do: 'getSession',
        sessionId: '$out.sessionId',
        session: {
          state: { messages: { $told: ['user: a', 'model: ok', 'user: b', 'model: ok'] } },
        },
      },
    ],
  },
  {
    name: 'a key is used once in a turn: by a running step, a completed one, or again after a failure',
    rules: ['S120', 'S155', 'S611'],
    agent: 'stepper',
    steps: [
      {
        do: 'run',
        input: 'go',
        as: 'first',
        output: {
          output: ['first', 'FAILED_PRECONDITION', 'FAILED_PRECONDITION', 'UNAVAILABLE', 'retried'],
        },
      },
      // The next turn is another run.
      {
        do: 'run',
        input: 'go',
        at: { sessionId: '$first.sessionId' },
        output: {
          output: ['first', 'FAILED_PRECONDITION', 'FAILED_PRECONDITION', 'UNAVAILABLE', 'retried'],
        },
      },
    ],
  },
  {
    name: 'a status is checked against the schema of the agent',
    rules: ['S157'],
    agent: 'signaller',
    steps: [
      {
        do: 'stream',
        input: '3',
        chunks: [
          { turnStart: { $any: true } },
          { status: { done: 3 } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
      {
        do: 'stream',
        input: 'three',
        output: { finishReason: 'failed', error: { status: 'INVALID_ARGUMENT' } },
        chunks: [{ turnStart: { $any: true } }, { turnEnd: { finishReason: 'failed' } }],
      },
    ],
  },
  {
    name: 'the finish reason of the handler’s result is that of the output',
    rules: ['S29', 'S52', 'S154'],
    agent: 'keeper',
    steps: [
      {
        do: 'run',
        input: 'after length',
        as: 'out',
        output: { output: 'after length', finishReason: 'length' },
      },
      {
        do: 'listSnapshots',
        sessionId: '$out.sessionId',
        snapshots: [
          { event: 'turnEnd', finishReason: 'stop' },
          { event: 'invocationEnd', finishReason: 'length' },
        ],
      },
    ],
  },
  {
    name: 'no patch when nothing changed, differences after the first of a turn',
    rules: ['S61', 'S25'],
    agent: 'keeper',
    steps: [
      {
        do: 'stream',
        input: 'state patch',
        as: 'first',
        chunks: [
          { turnStart: { $any: true } },
          { customPatch: [{ op: 'replace', path: '', value: { notes: ['state patch'] } }] },
          { customPatch: [{ op: 'add', path: '/notes/1', value: 'state patch' }] },
          { modelChunk: { $any: true } },
          { turnEnd: { $any: true } },
        ],
      },
      {
        do: 'stream',
        input: 'nothing',
        at: { sessionId: '$first.sessionId' },
        chunks: [
          { turnStart: { $any: true } },
          { modelChunk: { $any: true } },
          { turnEnd: { $any: true } },
        ],
      },
    ],
  },
  {
    name: 'what a handler changes behind its loop is saved at the end of the invocation, and its result is the output',
    rules: ['S29', 'S33', 'S65', 'S71'],
    agent: 'keeper',
    steps: [
      {
        do: 'run',
        input: 'after',
        as: 'out',
        output: {
          output: 'after',
          message: { content: [{ text: 'echo after' }] },
          finishReason: 'stop',
        },
      },
      {
        do: 'listSnapshots',
        sessionId: '$out.sessionId',
        snapshots: [
          { event: 'turnEnd', index: 0, turnIndex: 0, snapshotId: '$out.snapshotIds.0' },
          {
            event: 'invocationEnd',
            index: 1,
            turnIndex: 0,
            parentId: '$out.snapshotIds.0',
            snapshotId: '$out.snapshotId',
          },
        ],
      },
      {
        do: 'getSnapshot',
        at: { sessionId: '$out.sessionId' },
        snapshot: {
          snapshotId: '$out.snapshotId',
          state: { custom: { notes: ['after the last turn'] } },
        },
      },
    ],
  },
  {
    name: 'a handler may rewrite the history; earlier snapshots keep theirs',
    rules: ['S26'],
    agent: 'keeper',
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'run', input: 'rewrite', at: { sessionId: '$first.sessionId' }, as: 'second' },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$second.snapshotId' },
        snapshot: { state: { messages: { $told: ['user: rewrite', 'model: echo rewrite'] } } },
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$first.snapshotId' },
        snapshot: { state: { messages: { $told: ['user: a', 'model: echo a'] } } },
      },
    ],
  },
  {
    name: 'a transform redacts for all clients, but not for the agent itself',
    rules: ['S95', 'S96', 'S97'],
    agent: 'shy',
    script: [{ toolCalls: [{ name: 'note', input: { text: 'secret' } }] }, 'ok', 'still'],
    steps: [
      {
        do: 'stream',
        input: 'a',
        as: 'first',
        output: { artifacts: { $absent: true }, message: { content: [{ text: 'ok' }] } },
        chunks: [
          { turnStart: { $any: true } },
          { modelChunk: { content: [{ toolRequest: { name: 'note' } }] } },
          { modelChunk: { role: 'tool', content: [{ toolResponse: { output: 1 } }] } },
          { modelChunk: { content: [{ text: 'ok' }] } },
          { turnEnd: { $any: true } },
        ],
      },
      { do: 'run', input: 'b', at: { sessionId: '$first.sessionId' }, as: 'second' },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$first.snapshotId' },
        snapshot: { state: { custom: { $absent: true }, artifacts: { $absent: true } } },
      },
      {
        do: 'getSession',
        sessionId: '$first.sessionId',
        session: { state: { custom: { $absent: true }, artifacts: { $absent: true } } },
      },
      {
        do: 'diff',
        from: '$first.snapshotId',
        to: '$second.snapshotId',
        diff: {
          custom: [],
          artifacts: [],
          messages: { added: { $told: ['user: b', 'model: still'] } },
        },
      },
    ],
  },
];
