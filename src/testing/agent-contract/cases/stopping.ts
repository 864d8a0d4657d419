import type { ContractCase } from '../case.ts';

/** Aborting an attached turn. */
export const stoppingCases: readonly ContractCase[] = [
  {
    name: 'an aborted connection keeps the partial answer, and the session continues from it',
    rules: ['S53', 'S54', 'S55', 'S31'],
    agent: 'chat',
    script: [{ chunks: ['half ', 'an answer'], hang: true }, 'next'],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'a' },
      { do: 'send', connection: 'c', input: 'never' },
      {
        do: 'receive',
        connection: 'c',
        until: { modelChunk: { content: [{ text: 'an answer' }] } },
      },
      { do: 'abort', connection: 'c' },
      {
        do: 'receive',
        connection: 'c',
        until: { turnEnd: { finishReason: 'aborted', snapshotId: { $any: true } } },
      },
      {
        do: 'output',
        connection: 'c',
        as: 'out',
        output: {
          finishReason: 'aborted',
          error: { $absent: true },
          message: { role: 'model', content: [{ text: 'half an answer' }] },
        },
      },
      { do: 'stopped', times: 1 },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$out.snapshotId' },
        snapshot: {
          status: 'succeeded',
          finishReason: 'aborted',
          state: { messages: { $told: ['user: a', 'model: half an answer'] } },
        },
      },
      {
        do: 'run',
        input: 'b',
        at: { sessionId: '$out.sessionId' },
        output: { finishReason: 'stop' },
      },
      {
        do: 'asked',
        told: ['system: Be brief.', 'user: a', 'model: half an answer', 'user: b'],
        calls: 2,
      },
    ],
  },
  {
    name: 'the reserved id stops a turn from anywhere; until then it reads pending',
    rules: ['S43', 'S53', 'S55'],
    agent: 'chat',
    script: [{ chunks: ['half'], hang: true }],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'a' },
      { do: 'receive', connection: 'c', until: { turnStart: { $any: true } }, as: 'start' },
      { do: 'receive', connection: 'c', until: { modelChunk: { $any: true } } },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$start.turnStart.snapshotId' },
        snapshot: { status: 'pending', sessionId: '$start.turnStart.sessionId' },
      },
      {
        do: 'getSession',
        sessionId: '$start.turnStart.sessionId',
        session: { running: '$start.turnStart.snapshotId' },
      },
      { do: 'abortSnapshot', id: '$start.turnStart.snapshotId', status: 'pending' },
      { do: 'output', connection: 'c', output: { finishReason: 'aborted' } },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$start.turnStart.snapshotId' },
        snapshot: {
          status: 'succeeded',
          finishReason: 'aborted',
          state: { messages: { $told: ['user: a', 'model: half'] } },
        },
      },
      { do: 'abortSnapshot', id: '$start.turnStart.snapshotId', status: 'succeeded' },
    ],
  },
  {
    name: 'a tool that runs is stopped, and its request does not stay open',
    rules: ['S54', 'S55'],
    agent: 'helper',
    script: [
      {
        text: 'Let me see.',
        toolCalls: [{ name: 'slow' }, { name: 'note', input: { text: 'kept' } }],
      },
      'next',
    ],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'a' },
      { do: 'receive', connection: 'c', until: { modelChunk: { role: 'tool' } } },
      { do: 'abort', connection: 'c' },
      { do: 'output', connection: 'c', as: 'out', output: { finishReason: 'aborted' } },
      {
        do: 'run',
        input: 'b',
        at: { sessionId: '$out.sessionId' },
        output: { finishReason: 'stop' },
      },
      {
        do: 'asked',
        told: [
          'system: Notes: kept',
          'user: a',
          'model: Let me see.[slow?][note?]',
          'tool: [slow: "Not finished: it was stopped. Whether it had an effect is unknown."][note: 1]',
          'user: b',
        ],
      },
    ],
  },
  {
    name: 'a stop between two turns changes nothing about the one that has ended',
    rules: ['S58'],
    agent: 'chat',
    script: ['one'],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'a' },
      { do: 'receive', connection: 'c', until: { turnEnd: { $any: true } }, as: 'end' },
      { do: 'abort', connection: 'c' },
      {
        do: 'output',
        connection: 'c',
        output: { finishReason: 'stop', snapshotId: '$end.snapshotCreated' },
      },
    ],
  },
  ...(['chat', 'loop'] as const).map(
    (agent): ContractCase => ({
      name: `a stopped answer keeps its text and not its reasoning (${agent})`,
      rules: ['S55', 'S160'],
      agent,
      script: [{ reasoning: 'Let me see.', chunks: ['half'], hang: true }, 'next'],
      steps: [
        { do: 'open', connection: 'c' },
        { do: 'send', connection: 'c', input: 'a' },
        {
          do: 'receive',
          connection: 'c',
          until: { modelChunk: { content: [{ text: 'half' }] } },
        },
        { do: 'abort', connection: 'c' },
        {
          do: 'output',
          connection: 'c',
          as: 'out',
          output: {
            finishReason: 'aborted',
            message: { role: 'model', content: [{ text: 'half' }] },
          },
        },
        {
          do: 'getSnapshot',
          at: { snapshotId: '$out.snapshotId' },
          snapshot: { state: { messages: { $told: ['user: a', 'model: half'] } } },
        },
      ],
    }),
  ),
  ...(['chat', 'loop'] as const).map(
    (agent): ContractCase => ({
      name: `nothing is kept of an answer that is stopped while the model reasons (${agent})`,
      rules: ['S55', 'S160'],
      agent,
      script: [{ reasoning: 'Let me see.', hang: true }, 'next'],
      steps: [
        { do: 'open', connection: 'c' },
        { do: 'send', connection: 'c', input: 'a' },
        {
          do: 'receive',
          connection: 'c',
          until: { modelChunk: { content: [{ reasoning: 'Let me see.' }] } },
        },
        { do: 'abort', connection: 'c' },
        { do: 'output', connection: 'c', as: 'out', output: { finishReason: 'aborted' } },
        {
          do: 'getSnapshot',
          at: { snapshotId: '$out.snapshotId' },
          snapshot: { state: { messages: { $told: ['user: a'] } } },
        },
        {
          do: 'run',
          input: 'b',
          at: { sessionId: '$out.sessionId' },
          output: { finishReason: 'stop' },
        },
      ],
    }),
  ),
  {
    name: 'a whole message keeps its reasoning when the turn is stopped behind it',
    rules: ['S55', 'S160'],
    agent: 'helper',
    script: [{ reasoning: 'Let me see.', toolCalls: [{ name: 'slow', ref: 's' }] }],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: 'a' },
      {
        do: 'receive',
        connection: 'c',
        until: { modelChunk: { content: [{ toolRequest: { name: 'slow' } }] } },
      },
      { do: 'getSnapshot', at: { sessionId: 'nobody' }, snapshot: null },
      { do: 'abort', connection: 'c' },
      { do: 'output', connection: 'c', as: 'out', output: { finishReason: 'aborted' } },
      {
        do: 'getSnapshot',
        at: { snapshotId: '$out.snapshotId' },
        snapshot: {
          state: {
            messages: [
              { role: 'user' },
              {
                role: 'model',
                content: [{ reasoning: 'Let me see.' }, { toolRequest: { name: 'slow' } }],
              },
              { role: 'tool' },
            ],
          },
        },
      },
    ],
  },
];
