import type { Input } from '../../../protocol/turn.ts';
import type { ContractCase } from '../case.ts';

const unknown = '01890000-0000-7000-8000-00000000000a';

function detached(text: string): Input {
  return { message: { role: 'user', content: [{ text }] }, detach: true };
}

/** Runs that continue in the background. */
export const detachedCases: readonly ContractCase[] = [
  {
    name: 'a turn that is sent detached is pending, then succeeded, and can be watched from its beginning',
    rules: ['S108', 'S109', 'S114', 'S115'],
    agent: 'chat',
    script: ['one', { chunks: ['t', 'wo'] }, 'three'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      {
        do: 'run',
        input: detached('b'),
        at: { sessionId: '$first.sessionId' },
        as: 'run',
        output: {
          finishReason: 'detached',
          sessionId: '$first.sessionId',
          snapshotId: { $any: true },
          message: { $absent: true },
        },
      },
      {
        do: 'wait',
        id: '$run.snapshotId',
        snapshot: {
          status: 'succeeded',
          event: 'detach',
          finishReason: 'stop',
          parentId: '$first.snapshotId',
          turnIndex: 1,
          state: { messages: { $told: ['user: a', 'model: one', 'user: b', 'model: two'] } },
        },
      },
      {
        do: 'watch',
        id: '$run.snapshotId',
        as: 'seen',
        events: [
          { type: 'chunk', chunk: { turnStart: { snapshotId: '$run.snapshotId', turnIndex: 1 } } },
          { type: 'chunk', chunk: { modelChunk: { content: [{ text: 'two' }] } } },
          { type: 'chunk', chunk: { turnEnd: { finishReason: 'stop' } } },
          { type: 'end', snapshot: { status: 'succeeded' } },
        ],
      },
      {
        do: 'watch',
        id: '$run.snapshotId',
        after: '$seen.ids.0',
        events: [
          { type: 'chunk', chunk: { modelChunk: { content: [{ text: 'two' }] } } },
          { type: 'chunk', chunk: { turnEnd: { finishReason: 'stop' } } },
          { type: 'end', snapshot: { status: 'succeeded' } },
        ],
      },
      {
        do: 'run',
        input: 'c',
        at: { snapshotId: '$run.snapshotId' },
        output: { sessionId: '$first.sessionId', finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'a connection that detaches hands over what it had queued',
    rules: ['S108', 'S109', 'S38'],
    agent: 'chat',
    script: ['one', 'two', 'three'],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'a' },
      { do: 'receive', connection: 'c', until: { turnEnd: { $any: true } }, as: 'end' },
      { do: 'send', connection: 'c', input: 'b' },
      {
        do: 'detach',
        connection: 'c',
        input: 'c',
        as: 'run',
        output: { finishReason: 'detached' },
      },
      { do: 'send', connection: 'c', input: 'late', refused: { status: 'FAILED_PRECONDITION' } },
      {
        do: 'wait',
        id: '$run.snapshotId',
        snapshot: {
          status: 'succeeded',
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
    name: 'a turn that is detached in its middle keeps its id, and hears its connection no more',
    rules: ['S108', 'S110', 'S112'],
    agent: 'chat',
    script: [{ chunks: ['half'], hang: true }],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'a' },
      { do: 'receive', connection: 'c', until: { turnStart: { $any: true } }, as: 'start' },
      { do: 'receive', connection: 'c', until: { modelChunk: { $any: true } } },
      {
        do: 'detach',
        connection: 'c',
        as: 'run',
        output: { finishReason: 'detached', snapshotId: '$start.turnStart.snapshotId' },
      },
      { do: 'abort', connection: 'c' },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$run.snapshotId' },
        snapshot: { status: 'pending', event: 'detach' },
      },
      { do: 'stopped', times: 0 },
      { do: 'abortSnapshot', id: '$run.snapshotId', status: 'aborted' },
    ],
  },
  {
    name: 'abort of a detached run keeps what it had, frees the session, and stays aborted',
    rules: ['S112', 'S113', 'S75'],
    agent: 'chat',
    script: ['one', { chunks: ['half'], hang: true }, 'two'],
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'run', input: detached('b'), at: { sessionId: '$first.sessionId' }, as: 'run' },
      {
        do: 'run',
        input: 'c',
        at: { sessionId: '$first.sessionId' },
        refused: { status: 'ABORTED' },
      },
      { do: 'abortSnapshot', id: '$run.snapshotId', status: 'aborted' },
      { do: 'abortSnapshot', id: '$run.snapshotId', status: 'aborted' },
      { do: 'abortSnapshot', id: unknown, status: null },
      {
        do: 'wait',
        id: '$run.snapshotId',
        snapshot: { status: 'aborted', finishReason: 'aborted' },
      },
      {
        do: 'run',
        input: 'c',
        at: { snapshotId: '$run.snapshotId' },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      { do: 'run', input: 'c', at: { sessionId: '$first.sessionId' }, as: 'next' },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$next.snapshotId' },
        snapshot: {
          parentId: '$first.snapshotId',
          state: { messages: { $told: ['user: a', 'model: one', 'user: c', 'model: two'] } },
        },
      },
    ],
  },
  {
    name: 'a detached run that fails reports its error, and the session continues from the previous snapshot',
    rules: ['S109', 'S51'],
    agent: 'moody',
    steps: [
      { do: 'run', input: 'a', as: 'first' },
      { do: 'run', input: detached('throw'), at: { sessionId: '$first.sessionId' }, as: 'run' },
      {
        do: 'wait',
        id: '$run.snapshotId',
        snapshot: {
          status: 'failed',
          finishReason: 'failed',
          error: { status: 'INTERNAL', message: 'An unexpected error occurred.' },
        },
      },
      { do: 'getSession', sessionId: '$first.sessionId', session: { headId: '$first.snapshotId' } },
    ],
  },
  {
    name: 'a client-managed agent cannot detach',
    rules: ['S111'],
    agent: 'held',
    script: ['one'],
    steps: [
      { do: 'run', input: detached('a'), refused: { status: 'FAILED_PRECONDITION' } },
      {
        do: 'run',
        input: 'b',
        output: { state: { messages: { $told: ['user: b', 'model: one'] } } },
      },
    ],
  },
  {
    name: 'the handle of a run works for the owner of its start, and says when there is no such run',
    rules: ['S671'],
    agent: 'chat',
    script: ['done', 'done', 'done', { hang: true }, { hang: true }, { hang: true }],
    steps: [{ do: 'handles' }],
  },
];
