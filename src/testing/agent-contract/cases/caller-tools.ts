import type { ToolResponsePart } from '../../../protocol/message.ts';
import type { CallerToolInfo, Input } from '../../../protocol/turn.ts';
import type { ContractCase } from '../case.ts';

const showMap: CallerToolInfo = {
  name: 'show_map',
  description: 'Shows a map to the user.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

const call = { name: 'show_map', ref: 'm', input: { city: 'Lisbon' } };
const shown: ToolResponsePart = {
  toolResponse: { name: 'show_map', ref: 'm', output: { zoom: 3 } },
};

function said(text: string, tools: readonly CallerToolInfo[], more: Input = {}): Input {
  return { message: { role: 'user', content: [{ text }] }, tools: [...tools], ...more };
}

function many(count: number): readonly CallerToolInfo[] {
  return Array.from({ length: count }, (_, at) => ({ ...showMap, name: `tool_${at}` }));
}

const waiting = {
  finishReason: 'interrupted',
  message: {
    content: [{ toolRequest: call, metadata: { interrupt: { executedBy: 'caller' } } }],
  },
} as const;

const refused = { status: 'INVALID_ARGUMENT' } as const;

/** Tools that the caller executes. */
export const callerToolCases: readonly ContractCase[] = [
  {
    name: 'a call of a tool of the caller interrupts the turn, and its answer becomes the result, after a restart',
    rules: ['S360', 'S361'],
    agent: 'chat',
    script: [{ toolCalls: [call] }, 'There it is.', 'Hello.'],
    steps: [
      { do: 'run', input: said('where?', [showMap]), as: 'asked', output: waiting },
      { do: 'asked', told: ['system: Be brief.', 'user: where?'], tools: ['show_map'] },
      { do: 'restart' },
      {
        do: 'run',
        input: { resume: { respond: [shown] }, tools: [showMap] },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop', message: { content: [{ text: 'There it is.' }] } },
      },
      {
        do: 'asked',
        told: [
          'system: Be brief.',
          'user: where?',
          'model: [show_map?]',
          'tool: [show_map: {"zoom":3}]',
        ],
        tools: ['show_map'],
      },
      // Of that turn only.
      { do: 'run', input: 'hi', at: { sessionId: '$asked.sessionId' } },
      {
        do: 'asked',
        told: [
          'system: Be brief.',
          'user: where?',
          'model: [show_map?]',
          'tool: [show_map: {"zoom":3}]',
          'model: There it is.',
          'user: hi',
        ],
        tools: [],
      },
    ],
  },
  {
    name: 'the answer needs no tools, a second answer is refused, and a message declines the call',
    rules: ['S361'],
    agent: 'chat',
    script: [{ toolCalls: [call] }, 'Thanks.', { toolCalls: [call] }, 'All right.'],
    steps: [
      { do: 'run', input: said('where?', [showMap]), as: 'asked', output: waiting },
      {
        do: 'run',
        input: { resume: { respond: [shown] } },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop' },
      },
      {
        do: 'run',
        input: { resume: { respond: [shown] } },
        at: { sessionId: '$asked.sessionId' },
        refused: { status: 'FAILED_PRECONDITION' },
      },
      {
        do: 'run',
        input: said('again', [showMap]),
        at: { sessionId: '$asked.sessionId' },
        output: waiting,
      },
      {
        do: 'run',
        input: 'never mind',
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'tools of the agent run in the same message; bad input goes back to the model',
    rules: ['S360', 'S361'],
    agent: 'helper',
    script: [
      { toolCalls: [{ name: 'show_map', ref: 'bad', input: {} }] },
      { toolCalls: [{ name: 'note', ref: 'n', input: { text: 'one' } }, call] },
      'Done.',
    ],
    steps: [
      {
        do: 'run',
        input: said('note it and show it', [showMap]),
        as: 'asked',
        output: { finishReason: 'interrupted' },
      },
      {
        do: 'run',
        input: { resume: { respond: [shown] } },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop' },
      },
      {
        do: 'getSnapshot',
        at: { sessionId: '$asked.sessionId' },
        snapshot: { state: { custom: { notes: ['one'] } } },
      },
    ],
  },
  {
    name: 'tools that cannot be used are refused, and the session stays free',
    rules: ['S362'],
    agent: 'helper',
    script: ['Hello.', 'Hello again.'],
    steps: [
      { do: 'run', input: 'hi', as: 'first' },
      ...[
        [{ ...showMap, name: 'note' }],
        [showMap, showMap],
        [{ ...showMap, name: 'no name' }],
        [{ ...showMap, inputSchema: { type: 'nothing' } }],
        [{ ...showMap, description: 'x'.repeat(300_000) }],
        many(129),
      ].map((tools) => ({
        do: 'run' as const,
        input: said('a', tools),
        at: { sessionId: '$first.sessionId' },
        refused,
      })),
      {
        do: 'run',
        input: said('again', many(128)),
        at: { sessionId: '$first.sessionId' },
        output: { finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'a call that the caller executes cannot be restarted, and stays open',
    rules: ['S361'],
    agent: 'chat',
    script: [{ toolCalls: [call] }, 'Thanks.'],
    steps: [
      { do: 'run', input: said('where?', [showMap]), as: 'asked', output: waiting },
      {
        do: 'run',
        input: { resume: { restart: [{ toolRequest: call }] }, tools: [showMap] },
        at: { sessionId: '$asked.sessionId' },
        refused,
      },
      {
        do: 'run',
        input: { resume: { restart: [{ toolRequest: call }] } },
        at: { sessionId: '$asked.sessionId' },
        refused,
      },
      {
        do: 'run',
        input: { resume: { respond: [shown] } },
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop' },
      },
    ],
  },
  {
    name: 'a message can follow the answers: one model call answers both',
    rules: ['S364'],
    agent: 'helper',
    script: [{ toolCalls: [{ name: 'note', ref: 'n', input: { text: 'one' } }, call] }, 'Done.'],
    steps: [
      {
        do: 'run',
        input: said('where?', [showMap]),
        as: 'asked',
        output: { finishReason: 'interrupted' },
      },
      {
        do: 'run',
        input: said('and now?', [], { resume: { restart: [{ toolRequest: call }] } }),
        at: { sessionId: '$asked.sessionId' },
        refused,
      },
      {
        do: 'run',
        input: said('and now?', [], { resume: { respond: [shown] } }),
        at: { sessionId: '$asked.sessionId' },
        output: { finishReason: 'stop', message: { content: [{ text: 'Done.' }] } },
      },
      {
        do: 'asked',
        told: [
          'system: Notes: one',
          'user: where?',
          'model: [note?][show_map?]',
          'tool: [note: 1][show_map: {"zoom":3}]',
          'user: and now?',
        ],
        calls: 2,
      },
    ],
  },
  {
    name: 'a background run has the tools of its call',
    rules: ['S360', 'S363'],
    agent: 'chat',
    script: [{ toolCalls: [call] }],
    steps: [
      {
        do: 'run',
        input: said('where?', [showMap], { detach: true }),
        as: 'run',
        output: { finishReason: 'detached' },
      },
      {
        do: 'wait',
        id: '$run.snapshotId',
        snapshot: { status: 'succeeded', finishReason: 'interrupted' },
      },
      { do: 'asked', told: ['system: Be brief.', 'user: where?'], tools: ['show_map'] },
    ],
  },
  {
    name: 'each input of a connection has its own tools',
    rules: ['S360'],
    agent: 'chat',
    script: ['One.', 'Two.'],
    steps: [
      { do: 'open', connection: 'c' },
      { do: 'send', connection: 'c', input: said('a', [showMap]) },
      { do: 'receive', connection: 'c', until: { turnEnd: { $any: true } } },
      { do: 'asked', told: ['system: Be brief.', 'user: a'], tools: ['show_map'] },
      { do: 'send', connection: 'c', input: said('x', [showMap, showMap]), refused },
      { do: 'send', connection: 'c', input: 'b' },
      { do: 'receive', connection: 'c', until: { turnEnd: { $any: true } } },
      { do: 'asked', told: ['system: Be brief.', 'user: a', 'model: One.', 'user: b'], tools: [] },
      { do: 'output', connection: 'c' },
    ],
  },
  {
    name: 'an agent without a store takes tools of the caller',
    rules: ['S360'],
    agent: 'held',
    script: [{ toolCalls: [call] }, 'There it is.'],
    steps: [
      { do: 'run', input: said('where?', [showMap]), as: 'asked', output: waiting },
      {
        do: 'run',
        input: { resume: { respond: [shown] } },
        at: { state: '$asked.state' },
        output: { finishReason: 'stop' },
      },
    ],
  },
];
