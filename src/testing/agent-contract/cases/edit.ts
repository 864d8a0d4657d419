import type { ContractCase } from '../case.ts';

const ask = { name: 'transfer', ref: 't', input: { to: 'Ada' } };
const answer = { toolResponse: { name: 'transfer', ref: 't', output: { moved: 'nothing' } } };
const unknown = '00000000-0000-4000-8000-000000000000';

/** Edits of custom state and artifacts. */
export const editCases: readonly ContractCase[] = [
  {
    name: 'an edit saves a changed state as a snapshot that continues from another one, and the session continues from it',
    rules: ['S485', 'S486', 'S487'],
    agent: 'keeper',
    steps: [
      { do: 'run', input: 'state 1 artifact', as: 'one' },
      { do: 'run', input: 'state 2', at: { sessionId: '$one.sessionId' }, as: 'two' },
      {
        do: 'edit',
        id: '$one.snapshotId',
        change: {
          custom: { notes: ['edited'] },
          artifacts: [{ name: 'b', parts: [{ text: 'B' }] }],
        },
        reason: 'a typing error',
        as: 'edited',
        snapshot: {
          event: 'edit',
          status: 'succeeded',
          parentId: '$one.snapshotId',
          turnIndex: 0,
          index: 2,
          orphaned: false,
          edit: { reason: 'a typing error' },
          usage: { $absent: true },
          state: { custom: { notes: ['edited'] }, artifacts: [{ name: 'a' }, { name: 'b' }] },
        },
      },
      { do: 'restart' },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$one.snapshotId' },
        snapshot: {
          state: { custom: { notes: ['state 1 artifact'] }, artifacts: [{ name: 'a' }] },
        },
      },
      {
        do: 'run',
        input: 'patch 3',
        at: { sessionId: '$one.sessionId' },
        as: 'three',
      },
      {
        do: 'listSnapshots',
        sessionId: '$one.sessionId',
        includeOrphaned: true,
        snapshots: [
          { index: 0, event: 'turnEnd', orphaned: false },
          { index: 1, event: 'turnEnd', orphaned: true },
          { index: 2, event: 'edit', orphaned: false, edit: { reason: 'a typing error' } },
          { index: 3, event: 'turnEnd', turnIndex: 1, parentId: '$edited.snapshotId' },
        ],
      },
      {
        do: 'getSession',
        sessionId: '$one.sessionId',
        session: {
          headId: '$three.snapshotId',
          state: {
            custom: { notes: ['edited', 'patch 3'] },
            // A message carries the snapshot of its turn, not of the edit.
            messages: [
              { role: 'user' },
              { role: 'model', metadata: { snapshotId: '$one.snapshotId' } },
              { role: 'user' },
              { role: 'model', metadata: { snapshotId: '$three.snapshotId' } },
            ],
          },
        },
      },
      {
        do: 'edit',
        id: '$three.snapshotId',
        change: { customPatch: [{ op: 'remove', path: '/notes/0' }], removeArtifacts: ['a'] },
        snapshot: { state: { custom: { notes: ['patch 3'] }, artifacts: [{ name: 'b' }] } },
      },
      {
        do: 'fork',
        id: '$edited.snapshotId',
        snapshot: { event: 'turnEnd', edit: { $absent: true } },
      },
    ],
  },
  {
    name: 'an edit that does not fit is refused and changes nothing',
    rules: ['S486', 'S488'],
    agent: 'keeper',
    steps: [
      { do: 'run', input: 'state 1', as: 'one' },
      { do: 'run', input: 'state 2', at: { sessionId: '$one.sessionId' }, as: 'two' },
      ...[
        { custom: { notes: 'no list' } },
        { custom: { notes: ['state 2'] } },
        {},
        { customPatch: [{ op: 'remove', path: '/notes/7' }] as const },
        { custom: { notes: ['x'] }, customPatch: [{ op: 'remove', path: '/notes/0' }] as const },
        { removeArtifacts: ['unknown'] },
      ].map((change) => ({
        do: 'edit' as const,
        id: '$two.snapshotId',
        change,
        refused: { status: 'INVALID_ARGUMENT' },
      })),
      {
        do: 'edit',
        id: '$one.snapshotId',
        change: { custom: { notes: ['x'] } },
        ifHead: '$one.snapshotId',
        refused: { status: 'ABORTED', details: { headId: '$two.snapshotId' } },
      },
      {
        do: 'edit',
        id: unknown,
        change: { custom: { notes: ['x'] } },
        refused: { status: 'NOT_FOUND' },
      },
      {
        do: 'listSnapshots',
        sessionId: '$one.sessionId',
        includeOrphaned: true,
        snapshots: [{ index: 0 }, { index: 1 }],
      },
      { do: 'run', input: 'patch 3', at: { sessionId: '$one.sessionId' } },
    ],
  },
  {
    name: 'an edited question still waits, and is answered once',
    rules: ['S489'],
    agent: 'teller',
    script: [{ text: 'I will.', toolCalls: [ask] }, 'Done.'],
    steps: [
      { do: 'run', input: 'pay', as: 'asked', output: { finishReason: 'interrupted' } },
      {
        do: 'edit',
        id: '$asked.snapshotId',
        change: { artifacts: [{ name: 'a', parts: [{ text: 'A' }] }] },
        as: 'edited',
        snapshot: { finishReason: 'interrupted' },
      },
      { do: 'listSessions', filter: { waiting: true }, titles: ['pay'] },
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { snapshotId: '$edited.snapshotId' },
        output: { finishReason: 'stop' },
      },
      ...['$asked.snapshotId', '$edited.snapshotId'].map((snapshotId) => ({
        do: 'run' as const,
        input: { resume: { respond: [answer] } },
        at: { snapshotId },
        refused: { status: 'FAILED_PRECONDITION' },
      })),
    ],
  },
  {
    name: 'a question that was answered cannot be edited, and two edits of it are answered once',
    rules: ['S106', 'S489'],
    agent: 'teller',
    script: [{ text: 'I will.', toolCalls: [ask] }, 'Done.'],
    steps: [
      { do: 'run', input: 'pay', as: 'asked', output: { finishReason: 'interrupted' } },
      ...['one', 'two'].map((as) => ({
        do: 'edit' as const,
        id: '$asked.snapshotId',
        change: { artifacts: [{ name: as, parts: [{ text: 'A' }] }] },
        as,
        snapshot: { finishReason: 'interrupted' },
      })),
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { snapshotId: '$one.snapshotId' },
        as: 'answered',
        output: { finishReason: 'stop' },
      },
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { snapshotId: '$two.snapshotId' },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      ...['$asked.snapshotId', '$one.snapshotId', '$two.snapshotId'].map((id) => ({
        do: 'edit' as const,
        id,
        change: { artifacts: [{ name: 'b', parts: [{ text: 'B' }] }] },
        refused: { status: 'FAILED_PRECONDITION' },
      })),
      { do: 'listSessions', filter: { waiting: true }, titles: [] },
      {
        do: 'getSession',
        sessionId: '$asked.sessionId',
        session: { headId: '$answered.snapshotId' },
      },
      { do: 'fork', id: '$asked.snapshotId', as: 'forked' },
      {
        do: 'edit',
        id: '$forked.snapshotId',
        change: { artifacts: [{ name: 'b', parts: [{ text: 'B' }] }] },
        snapshot: { finishReason: 'interrupted' },
      },
    ],
  },
];
