import type { ToolRequestPart, ToolResponsePart } from '../../../protocol/message.ts';
import type { Input } from '../../../protocol/turn.ts';
import type { ContractCase, Step } from '../case.ts';

const ask = { name: 'transfer', ref: 't', input: { to: 'Ada' } };

function restart(resumed: string | boolean): ToolRequestPart {
  return { toolRequest: ask, metadata: { resumed } };
}

const answer = { toolResponse: { name: 'transfer', ref: 't', output: { moved: 'nothing' } } };

const interrupted = {
  do: 'run',
  input: 'pay',
  as: 'asked',
  output: {
    finishReason: 'interrupted',
    message: {
      content: [
        { text: 'I will.' },
        { toolRequest: ask, metadata: { interrupt: { question: 'Really?' } } },
      ],
    },
  },
} as const;

const asking = { text: 'I will.', toolCalls: [ask] };

function reviewed(ref: string): ToolResponsePart {
  return { toolResponse: { name: 'review', ref, output: 'yes' } };
}

/** An input to the session of the gate that is refused. */
function answerGate(input: Input, status: string): Step {
  return { do: 'run', input, at: { sessionId: '$asked.sessionId' }, refused: { status } };
}

/** Tools that pause for approval. */
export const interruptCases: readonly ContractCase[] = [
  {
    name: 'an answer is given in the tool’s place, after a restart of the process',
    rules: ['S100', 'S101', 'S104'],
    agent: 'teller',
    script: [asking, 'Done.'],
    steps: [
      interrupted,
      {
        do: 'getSnapshot',
        at: { snapshotId: '$asked.snapshotId' },
        snapshot: { status: 'succeeded', finishReason: 'interrupted' },
      },
      { do: 'restart' },
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { snapshotId: '$asked.snapshotId' },
        output: { finishReason: 'stop', message: { content: [{ text: 'Done.' }] } },
      },
      {
        do: 'asked',
        told: ['user: pay', 'model: I will.[transfer?]', 'tool: [transfer: {"moved":"nothing"}]'],
        calls: 2,
      },
    ],
  },
  {
    name: 'an answer for an unknown session is NOT_FOUND, in the foreground and in the background, and leaves no session behind',
    rules: ['S672'],
    agent: 'teller',
    script: [asking, 'Done.'],
    steps: [
      interrupted,
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { sessionId: 'unknown' },
        refused: { status: 'NOT_FOUND' },
      },
      {
        do: 'run',
        input: { resume: { respond: [answer] }, detach: true },
        at: { sessionId: 'unknown' },
        refused: { status: 'NOT_FOUND' },
      },
      { do: 'getSession', sessionId: 'unknown', session: null },
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'an answer that fits no interrupt is refused by the call that sends it, and the connection stays open',
    rules: ['S39', 'S183'],
    agent: 'teller',
    script: [asking, 'Done.'],
    steps: [
      { do: 'open', connection: 'c' },
      {
        do: 'send',
        connection: 'c',
        input: { resume: { respond: [answer] } },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      { do: 'send', connection: 'c', input: 'pay' },
      { do: 'receive', connection: 'c', until: { turnEnd: { finishReason: 'interrupted' } } },
      {
        do: 'send',
        connection: 'c',
        input: { resume: { respond: [{ toolResponse: { name: 'transfer', ref: 'other' } }] } },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      { do: 'send', connection: 'c', input: { resume: { respond: [answer] } } },
      { do: 'receive', connection: 'c', until: { turnEnd: { finishReason: 'stop' } } },
      {
        do: 'send',
        connection: 'c',
        input: { resume: { respond: [answer] } },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      {
        do: 'output',
        connection: 'c',
        output: { finishReason: 'stop', message: { content: [{ text: 'Done.' }] } },
      },
    ],
  },
  {
    name: 'a restart runs the tool with what it brought along; a tool may ask again',
    rules: ['S102', 'S107'],
    agent: 'teller',
    script: [asking, 'Done.'],
    steps: [
      interrupted,
      {
        do: 'run',
        input: { resume: { restart: [restart('later')] } },
        at: { sessionId: '$asked.sessionId' },
        as: 'again',
        output: { finishReason: 'interrupted' },
      },
      {
        do: 'run',
        input: { resume: { restart: [restart('yes')] } },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop' },
      },
      {
        do: 'asked',
        told: [
          'user: pay',
          'model: I will.[transfer?]',
          'tool: [transfer?]',
          'tool: [transfer: {"moved":"Ada","resumed":"yes"}]',
        ],
      },
    ],
  },
  {
    name: 'results of siblings are kept, also those that look like nothing',
    rules: ['S100'],
    agent: 'teller',
    script: [
      {
        toolCalls: [
          { name: 'nothing', ref: '1', input: { kind: 'zero' } },
          ask,
          { name: 'nothing', ref: '2', input: { kind: 'false' } },
          { name: 'nothing', ref: '3', input: { kind: 'empty' } },
          { name: 'nothing', ref: '4', input: { kind: 'null' } },
        ],
      },
      'Done.',
    ],
    steps: [
      { do: 'run', input: 'pay', as: 'asked', output: { finishReason: 'interrupted' } },
      { do: 'restart' },
      {
        do: 'run',
        input: { resume: { restart: [restart(true)] } },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop' },
      },
      {
        do: 'asked',
        told: [
          'user: pay',
          'model: [nothing?][transfer?][nothing?][nothing?][nothing?]',
          'tool: [nothing: 0][transfer: {"moved":"Ada","resumed":true}][nothing: false][nothing: ""][nothing: null]',
        ],
      },
    ],
  },
  {
    name: 'a forged, stale or incomplete answer is refused, and the interrupt stays open',
    rules: ['S103'],
    agent: 'teller',
    script: [{ toolCalls: [ask, { ...ask, ref: 'u', input: { to: 'Bob' } }] }, 'Done.'],
    steps: [
      { do: 'run', input: 'pay', as: 'asked', output: { finishReason: 'interrupted' } },
      ...[
        // Wrong name, wrong ref, wrong input, too few, duplicate, empty.
        { respond: [{ toolResponse: { name: 'steal', ref: 't', output: 1 } }] },
        { respond: [{ toolResponse: { name: 'transfer', ref: 'x', output: 1 } }] },
        {
          restart: [
            { toolRequest: { ...ask, input: { to: 'Eve' } } },
            { toolRequest: { ...ask, ref: 'u', input: { to: 'Bob' } } },
          ],
        },
        { respond: [answer] },
        { respond: [answer, answer] },
        {},
      ].map(
        (resume) =>
          ({
            do: 'run',
            input: { resume },
            at: { sessionId: '$asked.sessionId' },
            refused: { status: 'INVALID_ARGUMENT' },
          }) as const,
      ),
      {
        do: 'listSnapshots',
        sessionId: '$asked.sessionId',
        includeOrphaned: true,
        snapshots: [{ finishReason: 'interrupted' }],
      },
      {
        do: 'run',
        input: {
          resume: {
            respond: [answer],
            restart: [{ toolRequest: { ...ask, ref: 'u', input: { to: 'Bob' } } }],
          },
        },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'an interrupt is answered once; a fork may answer it again',
    rules: ['S106'],
    agent: 'teller',
    script: [asking, 'Done.', 'Forked.'],
    steps: [
      interrupted,
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { snapshotId: '$asked.snapshotId' },
        as: 'done',
      },
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { snapshotId: '$asked.snapshotId' },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      {
        do: 'run',
        input: { resume: { restart: [restart(true)] } },
        at: { sessionId: '$asked.sessionId' },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      { do: 'fork', id: '$asked.snapshotId', as: 'fork' },
      {
        do: 'run',
        input: { resume: { restart: [restart(true)] } },
        at: { sessionId: '$fork.sessionId' },
        output: { sessionId: '$fork.sessionId', message: { content: [{ text: 'Forked.' }] } },
      },
      { do: 'getSession', sessionId: '$asked.sessionId', session: { headId: '$done.snapshotId' } },
    ],
  },
  ...(['teller', 'loop'] as const).map(
    (agent): ContractCase => ({
      name: `a plain message declines open interrupts, and the conversation continues (${agent})`,
      rules: ['S105', 'S106'],
      agent,
      script: [asking, 'As you like.'],
      steps: [
        interrupted,
        {
          do: 'run',
          input: 'no, wait',
          at: { sessionId: '$asked.sessionId' },
          output: { finishReason: 'stop' },
        },
        {
          do: 'asked',
          told: [
            'user: pay',
            'model: I will.[transfer?]',
            'tool: [transfer: "Not answered: the user declined and went on with the next message."]',
            'user: no, wait',
          ],
        },
        {
          do: 'run',
          input: { resume: { respond: [answer] } },
          at: { snapshotId: '$asked.snapshotId' },
          refused: { status: 'FAILED_PRECONDITION' },
        },
      ],
    }),
  ),
  {
    name: 'wrong and second answers do not reach the handler of a custom agent',
    rules: ['S610', 'S103', 'S106'],
    agent: 'gate',
    steps: [
      {
        do: 'run',
        input: { resume: { respond: [reviewed('a')] } },
        refused: { status: 'INVALID_ARGUMENT' },
      },
      { do: 'run', input: 'publish', as: 'asked', output: { finishReason: 'interrupted' } },
      ...[
        // Wrong name, wrong ref, wrong input, too few, duplicate, empty.
        { respond: [{ toolResponse: { name: 'invented', ref: 'a', output: 1 } }, reviewed('b')] },
        { respond: [reviewed('a'), reviewed('c')] },
        { restart: [{ toolRequest: { name: 'review', ref: 'a' } }], respond: [reviewed('b')] },
        { respond: [reviewed('a')] },
        { respond: [reviewed('a'), reviewed('a')] },
        {},
      ].map((resume) => answerGate({ resume }, 'INVALID_ARGUMENT')),
      {
        do: 'run',
        input: { resume: { respond: [reviewed('b'), reviewed('a')] } },
        at: { snapshotId: '$asked.snapshotId' },
        as: 'done',
        output: { finishReason: 'stop', message: { content: [{ text: 'Published.' }] } },
      },
      answerGate({ resume: { respond: [reviewed('a'), reviewed('b')] } }, 'FAILED_PRECONDITION'),
      answerGate({ resume: { respond: [reviewed('a')] }, detach: true }, 'FAILED_PRECONDITION'),
      {
        do: 'run',
        input: { resume: { respond: [reviewed('a'), reviewed('b')] } },
        at: { snapshotId: '$asked.snapshotId' },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      answerGate(
        { resume: { respond: [{ toolResponse: { name: 'invented', ref: 'a' } }] } },
        'INVALID_ARGUMENT',
      ),
      {
        do: 'listSnapshots',
        sessionId: '$asked.sessionId',
        includeOrphaned: true,
        snapshots: [{ finishReason: 'interrupted' }, { finishReason: 'stop' }],
      },
      {
        do: 'getSession',
        sessionId: '$asked.sessionId',
        session: {
          headId: '$done.snapshotId',
          state: { custom: { notes: ['message', 'answer'] } },
        },
      },
      { do: 'fork', id: '$asked.snapshotId', as: 'fork' },
      {
        do: 'run',
        input: { resume: { respond: [reviewed('a'), reviewed('b')] } },
        at: { sessionId: '$fork.sessionId' },
        output: { finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'a resume whose turn fails leaves the interrupt open',
    rules: ['S107'],
    agent: 'teller',
    script: [asking, { error: { message: 'broken' } }, 'Done.'],
    steps: [
      interrupted,
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'failed', snapshotId: '$asked.snapshotId' },
      },
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'a resume that is refused leaves no session behind',
    rules: ['S103', 'S159'],
    agent: 'teller',
    steps: [
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { sessionId: 'fresh' },
        refused: { status: 'NOT_FOUND' },
      },
      { do: 'getSession', sessionId: 'fresh', session: null },
      { do: 'restart' },
      { do: 'getSession', sessionId: 'fresh', session: null },
    ],
  },
  {
    name: 'a tool may interrupt with any value',
    rules: ['S100', 'S161'],
    agent: 'teller',
    script: ['zero', 'false', 'empty', 'null'].flatMap((kind) => [
      { toolCalls: [{ name: 'ask', ref: kind, input: { kind } }] },
      'ok',
    ]),
    steps: ['zero', 'false', 'empty', 'null'].flatMap((kind): Step[] => [
      {
        do: 'run',
        input: 'go',
        as: kind,
        output: {
          finishReason: 'interrupted',
          message: { content: [{ metadata: { interrupt: { $any: true } } }] },
        },
      },
      {
        do: 'run',
        input: { resume: { respond: [{ toolResponse: { name: 'ask', ref: kind, output: 1 } }] } },
        at: { snapshotId: `$${kind}.snapshotId` },
        output: { finishReason: 'stop' },
      },
    ]),
  },
  {
    name: 'a tool request whose interrupt is false does not pause the turn',
    rules: ['S161'],
    agent: 'asker',
    steps: [
      { do: 'run', input: 'false', output: { finishReason: 'stop' } },
      ...['true', '0', '""', 'null', '{}'].map(
        (input): Step => ({ do: 'run', input, output: { finishReason: 'interrupted' } }),
      ),
    ],
  },
  {
    name: 'a resume whose turn fails after a tool iteration leaves the interrupt open',
    rules: ['S107', 'S162'],
    agent: 'careful',
    script: [
      asking,
      { toolCalls: [{ name: 'nothing', input: { kind: 'zero' } }] },
      { error: { message: 'broken' } },
      'Done.',
    ],
    steps: [
      interrupted,
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'failed', snapshotId: '$asked.snapshotId' },
      },
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { sessionId: '$asked.sessionId' },
        as: 'done',
        output: { finishReason: 'stop' },
      },
      {
        do: 'run',
        input: { resume: { respond: [answer] } },
        at: { snapshotId: '$asked.snapshotId' },
        refused: { status: 'FAILED_PRECONDITION' },
      },
    ],
  },
];
