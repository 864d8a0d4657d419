import type { ContractCase } from '../case.ts';

const unknown = '01890000-0000-7000-8000-00000000000a';

/** Every row of the table of inits. */
export const startingCases: readonly ContractCase[] = [
  {
    name: 'nothing, or an empty init, is a fresh session',
    rules: ['S82'],
    agent: 'chat',
    script: ['one', 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'run', input: 'b', at: {}, output: { sessionId: { $not: '$first.sessionId' } } },
      { do: 'asked', told: ['system: Be brief.', 'user: b'] },
    ],
  },
  {
    name: 'a session id continues at the head; an unknown one starts a new session with that id',
    rules: ['S84', 'S75'],
    agent: 'chat',
    script: ['one', 'two'],
    steps: [
      {
        do: 'run',
        input: 'a',
        at: { sessionId: 'mine' },
        as: 'first',
        output: { sessionId: 'mine' },
      },
      { do: 'run', input: 'b', at: { sessionId: 'mine' }, output: { sessionId: 'mine' } },
      { do: 'asked', told: ['system: Be brief.', 'user: a', 'model: one', 'user: b'] },
    ],
  },
  {
    name: '`from: null` starts at the beginning of a session, as another first turn',
    rules: ['S720'],
    agent: 'keeper',
    steps: [
      { do: 'run', input: 'state 1', as: 'one' },
      { do: 'run', input: 'state 2', at: { sessionId: '$one.sessionId' }, as: 'two' },
      {
        do: 'run',
        input: 'state 3 artifact',
        at: { sessionId: '$one.sessionId', from: null },
        as: 'three',
        output: { sessionId: '$one.sessionId' },
      },
      {
        do: 'listSnapshots',
        sessionId: '$one.sessionId',
        includeOrphaned: true,
        snapshots: [
          { orphaned: true, turnIndex: 0 },
          { orphaned: true, turnIndex: 1 },
          { orphaned: false, turnIndex: 0, parentId: { $absent: true } },
        ],
      },
      {
        do: 'getSession',
        sessionId: '$one.sessionId',
        session: {
          headId: '$three.snapshotId',
          turnCount: 1,
          state: { custom: { notes: ['state 3 artifact'] }, artifacts: [{ name: 'a' }] },
        },
      },
      {
        do: 'diff',
        from: '$two.snapshotId',
        to: '$three.snapshotId',
        diff: {
          messages: { removed: [{ $any: true }, { $any: true }, { $any: true }, { $any: true }] },
        },
      },
      { do: 'restore', id: '$two.snapshotId' },
      {
        do: 'run',
        input: 'state 4',
        at: { sessionId: '$one.sessionId', from: null, ifHead: '$three.snapshotId' },
        refused: { status: 'ABORTED', details: { headId: '$two.snapshotId' } },
      },
      {
        do: 'run',
        input: 'x',
        at: { sessionId: 'another', from: null },
        output: { sessionId: 'another' },
      },
    ],
  },
  {
    name: '`from: null` needs a session id, and neither a snapshot nor a state',
    rules: ['S720'],
    agent: 'chat',
    script: ['one'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'run', input: 'b', at: { from: null }, refused: { status: 'INVALID_ARGUMENT' } },
      {
        do: 'run',
        input: 'b',
        at: { from: null, sessionId: '$first.sessionId', snapshotId: '$first.snapshotId' },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'run',
        input: 'b',
        at: { from: null, state: {} },
        refused: { status: 'INVALID_ARGUMENT' },
      },
    ],
  },
  {
    name: 'a snapshot id continues from that snapshot, and the first commit moves the head',
    rules: ['S85', 'S76'],
    agent: 'chat',
    script: ['one', 'two', 'three'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'run', input: 'b', at: { sessionId: '$first.sessionId' }, as: 'second' },
      { do: 'open', connection: 'c', at: { snapshotId: '$first.snapshotId' } },
      { do: 'output', connection: 'c', output: { sessionId: '$first.sessionId' } },
      {
        do: 'getSession',
        sessionId: '$first.sessionId',
        session: { headId: '$second.snapshotId' },
      },
      { do: 'run', input: 'c', at: { snapshotId: '$first.snapshotId' }, as: 'third' },
      { do: 'asked', told: ['system: Be brief.', 'user: a', 'model: one', 'user: c'] },
      {
        do: 'getSession',
        sessionId: '$first.sessionId',
        session: { headId: '$third.snapshotId', turnCount: 2 },
      },
      {
        do: 'listSnapshots',
        sessionId: '$first.sessionId',
        includeOrphaned: true,
        snapshots: [
          { index: 0, turnIndex: 0, orphaned: false },
          { index: 1, turnIndex: 1, orphaned: true },
          { index: 2, turnIndex: 1, orphaned: false, parentId: '$first.snapshotId' },
        ],
      },
    ],
  },
  {
    name: 'an unknown snapshot is NOT_FOUND, one that has not succeeded FAILED_PRECONDITION',
    rules: ['S85', 'S88', 'S48'],
    agent: 'moody',
    steps: [
      { do: 'run', input: 'a', at: { snapshotId: unknown }, refused: { status: 'NOT_FOUND' } },
      {
        do: 'run',
        input: 'a',
        at: { snapshotId: 'not even an id' },
        refused: { status: 'NOT_FOUND' },
      },
      { do: 'stream', input: 'throw', as: 'bad', output: { finishReason: 'failed' } },
      {
        do: 'listSnapshots',
        sessionId: '$bad.sessionId',
        snapshots: [{ status: 'failed' }],
      },
      { do: 'getSnapshot', at: { sessionId: '$bad.sessionId' }, snapshot: null },
      { do: 'open', connection: 'c', at: { sessionId: '$bad.sessionId' } },
      { do: 'send', connection: 'c', input: 'throw' },
      { do: 'receive', connection: 'c', until: { turnStart: { $any: true } }, as: 'start' },
      { do: 'output', connection: 'c', output: { finishReason: 'failed' } },
      {
        do: 'run',
        input: 'a',
        at: { snapshotId: '$start.turnStart.snapshotId' },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$start.turnStart.snapshotId' },
        snapshot: { status: 'failed', state: { messages: { $told: ['user: throw'] } } },
      },
    ],
  },
  {
    name: 'a snapshot together with a session must belong to it',
    rules: ['S86', 'S165'],
    agent: 'chat',
    script: ['one', 'two', 'three'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'run', input: 'b', as: 'other' },
      {
        do: 'run',
        input: 'c',
        at: { snapshotId: '$first.snapshotId', sessionId: '$other.sessionId' },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'run',
        input: 'c',
        at: { snapshotId: '$first.snapshotId', sessionId: 'unknown' },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'run',
        input: 'c',
        at: { snapshotId: unknown, sessionId: '$first.sessionId' },
        refused: { status: 'NOT_FOUND' },
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$first.snapshotId', sessionId: '$other.sessionId' },
        snapshot: null,
      },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$first.snapshotId', sessionId: '$first.sessionId' },
        snapshot: { snapshotId: '$first.snapshotId' },
      },
      {
        do: 'run',
        input: 'c',
        at: { snapshotId: '$first.snapshotId', sessionId: '$first.sessionId' },
        output: { sessionId: '$first.sessionId', finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'an event id that is none is refused, in the same words everywhere',
    rules: ['S171'],
    agent: 'chat',
    script: ['one'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'badCursors', id: '$first.snapshotId' },
    ],
  },
  {
    name: 'a chat names its session: the given one, then that of its turns',
    rules: ['S41', 'S172'],
    agent: 'chat',
    script: ['one', 'two'],
    steps: [
      { do: 'chat', inputs: [], sessionIds: [null] },
      { do: 'chat', at: { sessionId: 's' }, inputs: ['a', 'b'], sessionIds: ['s', 's', 's'] },
    ],
  },
  {
    name: 'an id that is not a string is refused by every call',
    rules: ['S166'],
    agent: 'chat',
    script: ['one'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'badIds', id: '$first.snapshotId' },
    ],
  },
  {
    name: 'a server-managed agent rejects a state, and every agent rejects a state with an id',
    rules: ['S83', 'S87', 'S88'],
    agent: 'chat',
    script: [],
    steps: [
      {
        do: 'run',
        input: 'a',
        at: { state: { messages: [] } },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      {
        do: 'run',
        input: 'a',
        at: { state: { messages: [] }, sessionId: 's' },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'run',
        input: 'a',
        at: { state: { messages: [] }, snapshotId: unknown },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      { do: 'run', input: 'a', at: { sessionId: '' }, refused: { status: 'INVALID_ARGUMENT' } },
    ],
  },
  {
    name: 'a client-managed agent takes no id',
    rules: ['S83', 'S84', 'S85', 'S86', 'S87'],
    agent: 'held',
    script: [],
    steps: [
      { do: 'run', input: 'a', at: { sessionId: 's' }, refused: { status: 'FAILED_PRECONDITION' } },
      {
        do: 'run',
        input: 'a',
        at: { snapshotId: unknown },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      {
        do: 'run',
        input: 'a',
        at: { snapshotId: unknown, sessionId: 's' },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      {
        do: 'run',
        input: 'a',
        at: { state: {}, sessionId: 's' },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      {
        do: 'run',
        input: 'a',
        at: { state: {}, snapshotId: unknown },
        refused: { status: 'INVALID_ARGUMENT' },
      },
    ],
  },
];
