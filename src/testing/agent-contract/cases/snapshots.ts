import type { Input } from '../../../protocol/turn.ts';
import type { ContractCase } from '../case.ts';

const noteTwice = [
  { toolCalls: [{ name: 'note', input: { text: 'one' } }] },
  { toolCalls: [{ name: 'note', input: { text: 'two' } }] },
  'done',
];

const once: Input = {
  message: { role: 'user', content: [{ text: 'a' }] },
  requestId: 'once',
};

/** Snapshot policies. */
export const snapshotCases: readonly ContractCase[] = [
  {
    name: 'the message of an output names the snapshot of its turn, also when the request is repeated',
    rules: ['S723'],
    agent: 'chat',
    script: ['one'],
    steps: [
      { do: 'run', input: once, as: 'first', output: { snapshotId: { $any: true } } },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$first.message.metadata.snapshotId' },
        snapshot: { snapshotId: '$first.snapshotId' },
      },
      {
        do: 'run',
        input: once,
        output: {
          snapshotId: '$first.snapshotId',
          message: { metadata: { snapshotId: '$first.snapshotId' } },
        },
      },
    ],
  },
  {
    name: 'with always, each tool iteration is a snapshot too',
    rules: ['S66', 'S67', 'S68', 'S69', 'S71', 'S72'],
    agent: 'eager',
    script: noteTwice,
    steps: [
      {
        do: 'run',
        input: 'a',
        as: 'out',
        output: { snapshotIds: [{ $any: true }, { $any: true }, { $any: true }] },
      },
      {
        do: 'listSnapshots',
        sessionId: '$out.sessionId',
        snapshots: [
          { event: 'toolIterationEnd', index: 0, turnIndex: 0, snapshotId: '$out.snapshotIds.0' },
          {
            event: 'toolIterationEnd',
            index: 1,
            turnIndex: 0,
            parentId: '$out.snapshotIds.0',
            snapshotId: '$out.snapshotIds.1',
          },
          {
            event: 'turnEnd',
            index: 2,
            turnIndex: 0,
            parentId: '$out.snapshotIds.1',
            snapshotId: '$out.snapshotId',
          },
        ],
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$out.snapshotIds.0' },
        snapshot: {
          status: 'succeeded',
          state: {
            custom: { notes: ['one'] },
            messages: { $told: ['user: a', 'model: [note?]', 'tool: [note: 1]'] },
          },
        },
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$out.snapshotIds.1' },
        snapshot: { state: { custom: { notes: ['one', 'two'] } } },
      },
    ],
  },
  {
    name: 'with never, there is no snapshot, but the session continues from its latest state',
    rules: ['S66', 'S70', 'S75'],
    agent: 'fleeting',
    script: [...noteTwice, 'again'],
    steps: [
      {
        do: 'stream',
        input: 'a',
        as: 'out',
        output: {
          snapshotId: { $absent: true },
          snapshotIds: { $absent: true },
          finishReason: 'stop',
        },
      },
      { do: 'listSnapshots', sessionId: '$out.sessionId', snapshots: [] },
      {
        do: 'getSession',
        sessionId: '$out.sessionId',
        session: { turnCount: 1, state: { custom: { notes: ['one', 'two'] } } },
      },
      {
        do: 'stream',
        input: 'b',
        at: { sessionId: '$out.sessionId' },
        output: { sessionId: '$out.sessionId', snapshotId: { $absent: true } },
        chunks: [
          { turnStart: { turnIndex: 1 } },
          { modelChunk: { content: [{ text: 'again' }] } },
          { turnEnd: { finishReason: 'stop', snapshotId: { $absent: true } } },
        ],
      },
      {
        do: 'getSession',
        sessionId: '$out.sessionId',
        session: { turnCount: 2, state: { custom: { notes: ['one', 'two'] } } },
      },
      { do: 'listSnapshots', sessionId: '$out.sessionId', includeOrphaned: true, snapshots: [] },
    ],
  },
  {
    name: 'by default the end of a turn is a snapshot, and the end of the invocation only when it has something new',
    rules: ['S65', 'S69'],
    agent: 'chat',
    script: ['one'],
    steps: [
      { do: 'run', input: 'a', as: 'out' },
      {
        do: 'listSnapshots',
        sessionId: '$out.sessionId',
        snapshots: [{ event: 'turnEnd', snapshotId: '$out.snapshotId' }],
      },
    ],
  },
  {
    name: 'the same content has the same hash, and another id',
    rules: ['S63', 'S64', 'S133'],
    agent: 'chat',
    script: ['same', 'same', 'other'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'run', input: 'a', as: 'second' },
      { do: 'run', input: 'a', as: 'third' },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$first.snapshotId' },
        snapshot: { stateHash: { $any: true } },
        as: 'snapshot',
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$second.snapshotId' },
        snapshot: {
          snapshotId: { $not: '$first.snapshotId' },
          stateHash: '$snapshot.stateHash',
        },
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$third.snapshotId' },
        snapshot: { stateHash: { $not: '$snapshot.stateHash' } },
      },
    ],
  },
  {
    name: 'a policy counts the turns of the session, over invocations and processes',
    rules: ['S66'],
    agent: 'thrifty',
    script: ['0', '1', '2', '3', '4', '5', '6'],
    steps: [
      { do: 'run', input: 'a', at: { sessionId: 's' }, output: { snapshotId: { $absent: true } } },
      { do: 'run', input: 'b', at: { sessionId: 's' }, output: { snapshotId: { $absent: true } } },
      { do: 'restart' },
      { do: 'run', input: 'c', at: { sessionId: 's' }, output: { snapshotId: { $any: true } } },
      { do: 'run', input: 'd', at: { sessionId: 's' }, output: { snapshotId: { $absent: true } } },
      { do: 'restart' },
      { do: 'run', input: 'e', at: { sessionId: 's' }, output: { snapshotId: { $absent: true } } },
      { do: 'run', input: 'f', at: { sessionId: 's' }, output: { snapshotId: { $any: true } } },
      { do: 'run', input: 'g', at: { sessionId: 's' }, output: { snapshotId: { $absent: true } } },
      {
        do: 'listSnapshots',
        sessionId: 's',
        snapshots: [
          { index: 0, turnIndex: 2, event: 'turnEnd' },
          { index: 1, turnIndex: 5, event: 'turnEnd' },
        ],
      },
    ],
  },
  {
    name: 'a policy that returns a promise fails the turn',
    rules: ['S74', 'S156'],
    agent: 'promising',
    script: ['one'],
    steps: [
      {
        do: 'run',
        input: 'a',
        output: { finishReason: 'failed', error: { status: 'INVALID_ARGUMENT' } },
      },
    ],
  },
  {
    name: 'a turn that fails after a tool iteration leaves the session at the last good turn; its snapshots stay',
    rules: ['S47', 'S48', 'S75', 'S162'],
    agent: 'eager',
    script: [
      'one',
      { toolCalls: [{ name: 'note', input: { text: 'milk' } }] },
      { error: { message: 'broken' } },
      'two',
      'resumed',
    ],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      {
        do: 'stream',
        input: 'b',
        at: { sessionId: '$first.sessionId' },
        as: 'failed',
        output: {
          finishReason: 'failed',
          snapshotId: '$first.snapshotId',
          snapshotIds: [{ $any: true }],
        },
      },
      {
        do: 'getSession',
        sessionId: '$first.sessionId',
        session: {
          headId: '$first.snapshotId',
          turnCount: 1,
          state: { custom: { notes: [] }, messages: { $told: ['user: a', 'model: one'] } },
        },
      },
      {
        do: 'listSnapshots',
        sessionId: '$first.sessionId',
        snapshots: [
          { snapshotId: '$first.snapshotId' },
          { status: 'failed', turnIndex: 1, parentId: '$first.snapshotId' },
        ],
      },
      {
        do: 'listSnapshots',
        sessionId: '$first.sessionId',
        includeOrphaned: true,
        snapshots: [
          { snapshotId: '$first.snapshotId', orphaned: false },
          {
            snapshotId: '$failed.snapshotIds.0',
            event: 'toolIterationEnd',
            status: 'succeeded',
            orphaned: true,
            parentId: '$first.snapshotId',
          },
          { status: 'failed', orphaned: false },
        ],
      },
      { do: 'restart' },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: '$first.sessionId' },
        output: { finishReason: 'stop' },
      },
      { do: 'asked', told: ['user: a', 'model: one', 'user: c'] },
      {
        do: 'run',
        input: 'd',
        at: { snapshotId: '$failed.snapshotIds.0' },
        as: 'resumed',
        output: { finishReason: 'stop' },
      },
      {
        do: 'asked',
        told: ['user: a', 'model: one', 'user: b', 'model: [note?]', 'tool: [note: 1]', 'user: d'],
      },
      {
        do: 'getSession',
        sessionId: '$first.sessionId',
        session: { headId: '$resumed.snapshotId', state: { custom: { notes: ['milk'] } } },
      },
    ],
  },
  {
    name: 'a first turn that fails after a tool iteration leaves a session without a turn',
    rules: ['S47', 'S162'],
    agent: 'eager',
    script: [
      { toolCalls: [{ name: 'note', input: { text: 'milk' } }] },
      { error: { message: 'broken' } },
      'one',
    ],
    steps: [
      {
        do: 'run',
        input: 'a',
        as: 'failed',
        output: { finishReason: 'failed', snapshotId: { $absent: true } },
      },
      {
        do: 'getSession',
        sessionId: '$failed.sessionId',
        session: { turnCount: 0, headId: { $absent: true } },
      },
      { do: 'run', input: 'b', at: { sessionId: '$failed.sessionId' } },
      { do: 'asked', told: ['user: b'] },
    ],
  },
  {
    name: 'a turn that is stopped after a tool iteration keeps it',
    rules: ['S55', 'S162'],
    agent: 'eager',
    script: [
      { toolCalls: [{ name: 'note', input: { text: 'milk' } }] },
      { chunks: ['half'], hang: true },
      'next',
    ],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'a' },
      { do: 'receive', connection: 'c', until: { modelChunk: { content: [{ text: 'half' }] } } },
      { do: 'abort', connection: 'c' },
      { do: 'output', connection: 'c', as: 'out', output: { finishReason: 'aborted' } },
      {
        do: 'getSession',
        sessionId: '$out.sessionId',
        session: { headId: '$out.snapshotId', state: { custom: { notes: ['milk'] } } },
      },
      {
        do: 'listSnapshots',
        sessionId: '$out.sessionId',
        snapshots: [
          { event: 'toolIterationEnd', orphaned: false },
          { event: 'turnEnd', finishReason: 'aborted', parentId: '$out.snapshotIds.0' },
        ],
      },
    ],
  },
];
