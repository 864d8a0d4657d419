import type { ContractCase } from '../case.ts';

/** Going back, branching, comparing, naming, erasing. */
export const timelineCases: readonly ContractCase[] = [
  {
    name: 'restore moves the head, orphans what is off its path, and loses nothing',
    rules: ['S76', 'S134'],
    agent: 'keeper',
    steps: [
      { do: 'run', input: 'state 1', as: 'one' },
      { do: 'run', input: 'state 2 artifact', at: { sessionId: '$one.sessionId' }, as: 'two' },
      { do: 'restore', id: '$one.snapshotId', snapshot: { orphaned: false } },
      {
        do: 'getSession',
        sessionId: '$one.sessionId',
        session: {
          headId: '$one.snapshotId',
          turnCount: 1,
          state: { custom: { notes: ['state 1'] }, artifacts: { $absent: true } },
        },
      },
      {
        do: 'listSnapshots',
        sessionId: '$one.sessionId',
        snapshots: [{ index: 0, orphaned: false }],
      },
      { do: 'getSnapshot', at: { snapshotId: '$two.snapshotId' }, snapshot: { orphaned: true } },
      { do: 'run', input: 'state 3', at: { sessionId: '$one.sessionId' }, as: 'three' },
      {
        do: 'listSnapshots',
        sessionId: '$one.sessionId',
        includeOrphaned: true,
        snapshots: [
          { index: 0, orphaned: false },
          { index: 1, orphaned: true, turnIndex: 1 },
          { index: 2, orphaned: false, turnIndex: 1, parentId: '$one.snapshotId' },
        ],
      },
      { do: 'restore', id: '$two.snapshotId' },
      {
        do: 'getSession',
        sessionId: '$one.sessionId',
        session: { state: { custom: { notes: ['state 2 artifact'] }, artifacts: [{ name: 'a' }] } },
      },
      { do: 'getSnapshot', at: { snapshotId: '$three.snapshotId' }, snapshot: { orphaned: true } },
    ],
  },
  {
    name: 'only a succeeded snapshot can be restored or forked, and only one that exists',
    rules: ['S75', 'S76', 'S77'],
    agent: 'moody',
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'throw' },
      { do: 'receive', connection: 'c', until: { turnStart: { $any: true } }, as: 'start' },
      { do: 'output', connection: 'c' },
      {
        do: 'restore',
        id: '$start.turnStart.snapshotId',
        refused: { status: 'FAILED_PRECONDITION' },
      },
      { do: 'fork', id: '$start.turnStart.snapshotId', refused: { status: 'FAILED_PRECONDITION' } },
      {
        do: 'restore',
        id: '01890000-0000-7000-8000-00000000000a',
        refused: { status: 'NOT_FOUND' },
      },
      { do: 'fork', id: '01890000-0000-7000-8000-00000000000a', refused: { status: 'NOT_FOUND' } },
    ],
  },
  {
    name: 'a fork shares the history, and then goes its own way',
    rules: ['S77'],
    agent: 'chat',
    script: ['one', 'two', 'three'],
    steps: [
      { do: 'run', input: 'a', as: 'one' },
      { do: 'fork', id: '$one.snapshotId', as: 'fork', snapshot: { turnIndex: 0, index: 0 } },
      { do: 'run', input: 'b', at: { sessionId: '$fork.sessionId' } },
      { do: 'run', input: 'c', at: { sessionId: '$one.sessionId' } },
      { do: 'asked', told: ['system: Be brief.', 'user: a', 'model: one', 'user: c'] },
      {
        do: 'getSession',
        sessionId: '$fork.sessionId',
        session: {
          turnCount: 2,
          forkedFrom: { sessionId: '$one.sessionId', snapshotId: '$one.snapshotId' },
          state: { messages: { $told: ['user: a', 'model: one', 'user: b', 'model: two'] } },
        },
      },
      { do: 'deleteSession', sessionId: '$one.sessionId', deleted: true },
      {
        do: 'getSession',
        sessionId: '$fork.sessionId',
        session: {
          state: { messages: { $told: ['user: a', 'model: one', 'user: b', 'model: two'] } },
        },
      },
    ],
  },
  {
    name: 'diff says what changed between two snapshots, either way',
    rules: ['S78'],
    agent: 'keeper',
    steps: [
      { do: 'run', input: 'state', as: 'one' },
      { do: 'run', input: 'patch artifact', at: { sessionId: '$one.sessionId' }, as: 'two' },
      {
        do: 'diff',
        from: '$one.snapshotId',
        to: '$two.snapshotId',
        diff: {
          messages: {
            added: { $told: ['user: patch artifact', 'model: echo patch artifact'] },
            removed: [],
          },
          custom: [{ op: 'add', path: '/notes/1', value: 'patch artifact' }],
          artifacts: [{ name: 'a', change: 'added' }],
        },
      },
      {
        do: 'diff',
        from: '$two.snapshotId',
        to: '$one.snapshotId',
        diff: {
          messages: {
            added: [],
            removed: { $told: ['user: patch artifact', 'model: echo patch artifact'] },
          },
          custom: [{ op: 'remove', path: '/notes/1' }],
          artifacts: [{ name: 'a', change: 'removed' }],
        },
      },
    ],
  },
  {
    name: 'labels and titles come and go; an erased session is unknown',
    rules: ['S79', 'S80'],
    agent: 'chat',
    script: ['one'],
    steps: [
      { do: 'run', input: 'a', as: 'one' },
      { do: 'label', id: '$one.snapshotId', label: 'good' },
      { do: 'getSnapshot', at: { snapshotId: '$one.snapshotId' }, snapshot: { label: 'good' } },
      { do: 'label', id: '$one.snapshotId', label: null },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$one.snapshotId' },
        snapshot: { label: { $absent: true } },
      },
      {
        do: 'updateSession',
        sessionId: '$one.sessionId',
        change: { title: 'A talk' },
        session: { title: 'A talk' },
      },
      { do: 'deleteSession', sessionId: '$one.sessionId', deleted: true },
      { do: 'deleteSession', sessionId: '$one.sessionId', deleted: false },
      { do: 'getSession', sessionId: '$one.sessionId', session: null },
      { do: 'getSnapshot', at: { snapshotId: '$one.snapshotId' }, snapshot: null },
    ],
  },
  {
    name: 'a session that is being worked on is neither restored nor erased, and takes no second turn',
    rules: ['S81', 'S91'],
    agent: 'chat',
    script: ['one', { chunks: ['half'], hang: true }],
    steps: [
      { do: 'run', input: 'a', as: 'one' },
      { do: 'open', connection: 'c', at: { sessionId: '$one.sessionId' } },
      { do: 'send', connection: 'c', input: 'b' },
      { do: 'receive', connection: 'c', until: { modelChunk: { $any: true } } },
      { do: 'restore', id: '$one.snapshotId', refused: { status: 'ABORTED' } },
      { do: 'deleteSession', sessionId: '$one.sessionId', refused: { status: 'ABORTED' } },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: '$one.sessionId' },
        refused: { status: 'ABORTED' },
      },
      {
        do: 'run',
        input: 'c',
        at: { snapshotId: '$one.snapshotId' },
        refused: { status: 'ABORTED' },
      },
      { do: 'abort', connection: 'c' },
      { do: 'output', connection: 'c', output: { finishReason: 'aborted' } },
      { do: 'restore', id: '$one.snapshotId' },
    ],
  },
  {
    name: 'with fork, a second turn runs in a session of its own, from the same place',
    rules: ['S93'],
    agent: 'forking',
    script: ['one', { chunks: ['half'], hang: true }, 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'one' },
      { do: 'open', connection: 'c', at: { sessionId: '$one.sessionId' } },
      { do: 'send', connection: 'c', input: 'b' },
      { do: 'receive', connection: 'c', until: { modelChunk: { $any: true } } },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: '$one.sessionId' },
        as: 'forked',
        output: { sessionId: { $not: '$one.sessionId' }, finishReason: 'stop' },
      },
      { do: 'asked', told: ['user: a', 'model: one', 'user: c'] },
      {
        do: 'getSession',
        sessionId: '$forked.sessionId',
        session: { forkedFrom: { snapshotId: '$one.snapshotId' }, turnCount: 2 },
      },
      { do: 'abort', connection: 'c' },
      { do: 'output', connection: 'c', output: { sessionId: '$one.sessionId' } },
    ],
  },
];
