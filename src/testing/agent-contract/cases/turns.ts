import type { ContractCase } from '../case.ts';

/** Turns and how they fail. */
export const turnCases: readonly ContractCase[] = [
  {
    name: 'a turn begins with turnStart, ends with one turnEnd, and its snapshot has the reserved id',
    rules: ['S42', 'S44', 'S46', 'S52', 'S136'],
    agent: 'chat',
    script: [{ chunks: ['Hel', 'lo'], finishReason: 'length', usage: { totalTokens: 7 } }],
    steps: [
      {
        do: 'stream',
        input: 'hi',
        as: 'out',
        output: {
          finishReason: 'length',
          message: { role: 'model', content: [{ text: 'Hello' }] },
          usage: { totalTokens: 7 },
          state: { $absent: true },
          error: { $absent: true },
        },
        chunks: [
          { turnStart: { sessionId: { $any: true }, snapshotId: { $any: true }, turnIndex: 0 } },
          { modelChunk: { role: 'model', content: [{ text: 'Hello' }] } },
          {
            snapshotCreated: { $any: true },
            turnEnd: {
              finishReason: 'length',
              snapshotId: { $any: true },
              usage: { totalTokens: 7 },
            },
          },
        ],
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$out.snapshotId' },
        snapshot: {
          sessionId: '$out.sessionId',
          parentId: { $absent: true },
          index: 0,
          turnIndex: 0,
          event: 'turnEnd',
          status: 'succeeded',
          finishReason: 'length',
          usage: { totalTokens: 7 },
          orphaned: false,
          state: { messages: { $told: ['user: hi', 'model: Hello'] } },
        },
      },
    ],
  },
  {
    name: 'each turn continues from the previous one, and the system prompt reaches the model once and is not stored',
    rules: ['S6', 'S27', 'S72', 'S84'],
    agent: 'chat',
    script: ['one', 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      {
        do: 'run',
        input: 'b',
        at: { sessionId: '$first.sessionId' },
        as: 'second',
        output: { sessionId: '$first.sessionId' },
      },
      { do: 'asked', told: ['system: Be brief.', 'user: a', 'model: one', 'user: b'], calls: 2 },
      {
        do: 'getSnapshot',
        at: { sessionId: '$first.sessionId' },
        snapshot: {
          snapshotId: '$second.snapshotId',
          parentId: '$first.snapshotId',
          index: 1,
          turnIndex: 1,
          state: { messages: { $told: ['user: a', 'model: one', 'user: b', 'model: two'] } },
        },
      },
    ],
  },
  {
    name: 'many turns on one connection, each with its own snapshot',
    rules: ['S35', 'S36', 'S71'],
    agent: 'chat',
    script: ['one', 'two'],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'a' },
      { do: 'receive', connection: 'c', until: { turnEnd: { $any: true } }, as: 'end1' },
      { do: 'send', connection: 'c', input: 'b' },
      { do: 'receive', connection: 'c', until: { turnEnd: { $any: true } }, as: 'end2' },
      {
        do: 'output',
        connection: 'c',
        output: {
          snapshotId: '$end2.snapshotCreated',
          snapshotIds: ['$end1.snapshotCreated', '$end2.snapshotCreated'],
          finishReason: 'stop',
        },
      },
      { do: 'send', connection: 'c', input: 'late', refused: { status: 'FAILED_PRECONDITION' } },
    ],
  },
  {
    name: 'inputs that are sent at once are worked on in their order',
    rules: ['S40', 'S37'],
    agent: 'chat',
    script: ['one', 'two', 'three'],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'sendAll', connection: 'c', inputs: ['a', 'b', 'c'] },
      { do: 'output', connection: 'c', as: 'out' },
      {
        do: 'getSession',
        sessionId: '$out.sessionId',
        session: {
          turnCount: 3,
          headId: '$out.snapshotId',
          state: {
            messages: {
              $told: ['user: a', 'model: one', 'user: b', 'model: two', 'user: c', 'model: three'],
            },
          },
        },
      },
    ],
  },
  {
    name: 'reading a state puts the snapshot id on the last message of each turn',
    rules: ['S45'],
    agent: 'chat',
    script: ['one', 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'run', input: 'b', at: { sessionId: '$first.sessionId' }, as: 'second' },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$second.snapshotId' },
        snapshot: {
          state: {
            messages: [
              { role: 'user', metadata: { $absent: true } },
              { role: 'model', metadata: { snapshotId: '$first.snapshotId' } },
              { role: 'user', metadata: { $absent: true } },
              { role: 'model', metadata: { snapshotId: '$second.snapshotId' } },
            ],
          },
        },
      },
    ],
  },
  {
    name: 'a failed turn is a result: the last good snapshot, an error without the text of a stranger, a failed snapshot',
    rules: ['S47', 'S48', 'S51', 'S75'],
    agent: 'moody',
    steps: [
      { do: 'run', input: 'first', as: 'good' },
      {
        do: 'stream',
        input: 'throw',
        at: { sessionId: '$good.sessionId' },
        as: 'bad',
        output: {
          finishReason: 'failed',
          snapshotId: '$good.snapshotId',
          snapshotIds: { $absent: true },
          message: { $absent: true },
          error: { status: 'INTERNAL', message: 'An unexpected error occurred.' },
        },
        chunks: [
          { turnStart: { turnIndex: 1 } },
          { modelChunk: { content: [{ text: 'hm' }] } },
          { turnEnd: { finishReason: 'failed', snapshotId: { $absent: true } } },
        ],
      },
      {
        do: 'listSnapshots',
        sessionId: '$good.sessionId',
        snapshots: [
          { status: 'succeeded', index: 0 },
          {
            status: 'failed',
            index: 1,
            parentId: '$good.snapshotId',
            error: { status: 'INTERNAL', message: 'An unexpected error occurred.' },
          },
        ],
      },
      {
        do: 'run',
        input: 'again',
        at: { sessionId: '$good.sessionId' },
        output: { finishReason: 'stop' },
        as: 'again',
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$again.snapshotId' },
        snapshot: {
          parentId: '$good.snapshotId',
          index: 2,
          turnIndex: 1,
          state: {
            messages: { $told: ['user: first', 'model: fine', 'user: again', 'model: fine'] },
          },
        },
      },
    ],
  },
  {
    name: 'inputs queued behind a failed turn are not run',
    rules: ['S49'],
    agent: 'moody',
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'sendAll', connection: 'c', inputs: ['fine', 'throw', 'never'] },
      { do: 'output', connection: 'c', as: 'out', output: { finishReason: 'failed' } },
      {
        do: 'getSession',
        sessionId: '$out.sessionId',
        session: { turnCount: 1, state: { messages: { $told: ['user: fine', 'model: fine'] } } },
      },
      { do: 'send', connection: 'c', input: 'late', refused: { status: 'FAILED_PRECONDITION' } },
    ],
  },
  {
    name: 'a handler that throws behind its loop ends as failed, and its turns stay',
    rules: ['S50', 'S51'],
    agent: 'moody',
    steps: [
      {
        do: 'run',
        input: 'outside',
        as: 'out',
        output: {
          finishReason: 'failed',
          snapshotId: { $any: true },
          error: { status: 'INTERNAL', message: 'An unexpected error occurred.' },
        },
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$out.snapshotId' },
        snapshot: {
          status: 'succeeded',
          state: { messages: { $told: ['user: outside', 'model: fine'] } },
        },
      },
    ],
  },
  {
    name: 'a model that fails leaves the session where it was',
    rules: ['S47', 'S51'],
    agent: 'chat',
    script: ['one', { text: 'half', error: { name: 'Error', message: 'key=123' } }, 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      {
        do: 'run',
        input: 'b',
        at: { sessionId: '$first.sessionId' },
        output: {
          finishReason: 'failed',
          snapshotId: '$first.snapshotId',
          error: { status: { $any: true } },
        },
      },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: '$first.sessionId' },
        output: { finishReason: 'stop' },
      },
      { do: 'asked', told: ['system: Be brief.', 'user: a', 'model: one', 'user: c'] },
    ],
  },
  {
    name: 'a message must be a user message without tool parts, and an input must have something in it',
    rules: ['S39', 'S59', 'S60'],
    agent: 'chat',
    script: ['fine'],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: {}, refused: { status: 'INVALID_ARGUMENT' } },
      {
        do: 'send',
        connection: 'c',
        input: { message: { role: 'model', content: [{ text: 'x' }] } },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'send',
        connection: 'c',
        input: { message: { role: 'user', content: [] } },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'send',
        connection: 'c',
        input: { message: { role: 'user', content: [{ toolRequest: { name: 'x' } }] } },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'send',
        connection: 'c',
        input: { message: { role: 'user', content: [{ text: 'x' }] }, resume: { respond: [] } },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      { do: 'send', connection: 'c', input: 'good' },
      { do: 'output', connection: 'c', output: { finishReason: 'stop' } },
      { do: 'asked', told: ['system: Be brief.', 'user: good'], calls: 1 },
    ],
  },
  {
    name: 'tools see and change the session, and the template reads what they left',
    rules: ['S6', 'S22', 'S61', 'S138', 'S150'],
    agent: 'helper',
    script: [
      {
        toolCalls: [
          { name: 'note', input: { text: 'milk' } },
          { name: 'note', input: { text: 'eggs' } },
        ],
      },
      'Noted.',
      'Two.',
    ],
    steps: [
      {
        do: 'stream',
        input: 'note it',
        as: 'out',
        output: { artifacts: [{ name: 'notes.txt', parts: [{ text: 'milk\neggs' }] }] },
        chunks: [
          { turnStart: { turnIndex: 0 } },
          { modelChunk: { content: [{ toolRequest: { name: 'note' } }] } },
          { modelChunk: { content: [{ toolRequest: { name: 'note' } }] } },
          { customPatch: [{ op: 'replace', path: '', value: { notes: ['milk'] } }] },
          { artifact: { name: 'notes.txt', parts: [{ text: 'milk' }] } },
          { customPatch: [{ op: 'add', path: '/notes/1', value: 'eggs' }] },
          { artifact: { name: 'notes.txt', parts: [{ text: 'milk\neggs' }] } },
          { modelChunk: { role: 'tool', content: [{ toolResponse: { output: 1 } }] } },
          { modelChunk: { role: 'tool', content: [{ toolResponse: { output: 2 } }] } },
          { modelChunk: { role: 'model', content: [{ text: 'Noted.' }] } },
          { turnEnd: { finishReason: 'stop' } },
        ],
      },
      { do: 'run', input: 'how many?', at: { sessionId: '$out.sessionId' } },
      {
        do: 'asked',
        told: [
          'system: Notes: milk,eggs',
          'user: note it',
          'model: [note?][note?]',
          'tool: [note: 1][note: 2]',
          'model: Noted.',
          'user: how many?',
        ],
      },
    ],
  },
];
