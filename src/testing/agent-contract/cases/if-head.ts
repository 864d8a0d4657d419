import type { ContractCase, Step } from '../case.ts';

const unknown = '0193b7a0-0000-7000-8000-000000000000';

/** Expects the head of the session to be unchanged. */
const unmoved: Step = {
  do: 'getSession',
  sessionId: '$one.sessionId',
  session: { headId: '$two.snapshotId', turnCount: 2 },
};
const stale = { status: 'ABORTED', details: { headId: '$two.snapshotId' } } as const;

/** Compare-and-set on the head of a session. */
export const ifHeadCases: readonly ContractCase[] = [
  {
    name: 'a turn with ifHead runs only from that head',
    rules: ['S169'],
    agent: 'chat',
    script: ['one', 'two', 'three', 'four'],
    steps: [
      { do: 'run', input: 'a', at: { sessionId: 's', ifHead: null }, as: 'one' },
      { do: 'run', input: 'b', at: { sessionId: 's', ifHead: '$one.snapshotId' }, as: 'two' },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: 's', ifHead: '$one.snapshotId' },
        refused: stale,
      },
      { do: 'run', input: 'c', at: { sessionId: 's', ifHead: null }, refused: stale },
      { do: 'run', input: 'c', at: { sessionId: 's', ifHead: unknown }, refused: stale },
      {
        do: 'stream',
        input: 'c',
        at: { snapshotId: '$one.snapshotId', ifHead: '$one.snapshotId' },
        refused: stale,
      },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: 'new', ifHead: unknown },
        refused: { status: 'ABORTED', details: { headId: null } },
      },
      unmoved,
      { do: 'asked', told: ['system: Be brief.', 'user: a', 'model: one', 'user: b'], calls: 2 },
      { do: 'open', connection: 'c', at: { sessionId: 's', ifHead: '$two.snapshotId' } },
      { do: 'send', connection: 'c', input: 'c' },
      { do: 'send', connection: 'c', input: 'd' },
      { do: 'output', connection: 'c', as: 'last', output: { finishReason: 'stop' } },
      {
        do: 'getSession',
        sessionId: 's',
        session: { headId: '$last.snapshotId', turnCount: 4 },
      },
    ],
  },
  {
    name: 'a turn from an older snapshot with ifHead compares the head, not the snapshot',
    rules: ['S169'],
    agent: 'chat',
    script: ['one', 'two', 'three'],
    steps: [
      { do: 'run', input: 'a', as: 'one' },
      { do: 'run', input: 'b', at: { sessionId: '$one.sessionId' }, as: 'two' },
      {
        do: 'run',
        input: 'c',
        at: { snapshotId: '$one.snapshotId', ifHead: '$two.snapshotId' },
        output: { sessionId: '$one.sessionId', finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'restore, fork and label with ifHead change nothing for a stale caller',
    rules: ['S169'],
    agent: 'chat',
    script: ['one', 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'one' },
      { do: 'run', input: 'b', at: { sessionId: '$one.sessionId' }, as: 'two' },
      { do: 'restore', id: '$one.snapshotId', ifHead: '$one.snapshotId', refused: stale },
      { do: 'fork', id: '$one.snapshotId', ifHead: '$one.snapshotId', refused: stale },
      {
        do: 'label',
        id: '$one.snapshotId',
        label: 'x',
        ifHead: '$one.snapshotId',
        refused: stale,
      },
      { do: 'restore', id: unknown, ifHead: unknown, refused: { status: 'NOT_FOUND' } },
      unmoved,
      {
        do: 'getSnapshot',
        at: { snapshotId: '$one.snapshotId' },
        snapshot: { label: { $absent: true } },
      },
      { do: 'label', id: '$one.snapshotId', label: 'x', ifHead: '$two.snapshotId' },
      { do: 'fork', id: '$one.snapshotId', ifHead: '$two.snapshotId' },
      {
        do: 'restore',
        id: '$one.snapshotId',
        ifHead: '$two.snapshotId',
        snapshot: { label: 'x', orphaned: false },
      },
    ],
  },
  {
    name: 'a turn with ifHead is never forked: on a busy session it is ABORTED',
    rules: ['S169', 'S92', 'S93'],
    agent: 'forking',
    script: ['one', { chunks: ['half'], hang: true }],
    steps: [
      { do: 'run', input: 'a', as: 'one' },
      { do: 'open', connection: 'c', at: { sessionId: '$one.sessionId' } },
      { do: 'send', connection: 'c', input: 'b' },
      { do: 'receive', connection: 'c', until: { modelChunk: { $any: true } } },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: '$one.sessionId', ifHead: '$one.snapshotId' },
        refused: { status: 'ABORTED' },
      },
      { do: 'abort', connection: 'c' },
      { do: 'output', connection: 'c', as: 'two', output: { sessionId: '$one.sessionId' } },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: '$one.sessionId', ifHead: '$one.snapshotId' },
        refused: stale,
      },
    ],
  },
  {
    name: 'with wait, a turn whose ifHead is stale does not wait',
    rules: ['S169', 'S92'],
    agent: 'patient',
    script: ['one', 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'one' },
      { do: 'run', input: 'b', at: { sessionId: '$one.sessionId' }, as: 'two' },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: '$one.sessionId', ifHead: '$one.snapshotId' },
        refused: stale,
      },
    ],
  },
  {
    name: 'a client-managed agent has no head to compare',
    rules: ['S169'],
    agent: 'held',
    script: [],
    steps: [
      {
        do: 'run',
        input: 'a',
        at: { ifHead: unknown },
        refused: { status: 'FAILED_PRECONDITION' },
      },
    ],
  },
];
