/**
 * An MCP server in plain JSON-RPC over its standard input and output, of the protocol of 2025, that behaves as its first
 * argument says. Written without the SDK, which refuses most of what it does here.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { hostileSchemas } from '../../support/hostile-schemas.ts';

type Message = {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: unknown;
};

const behaviour = process.argv[2] ?? '';
const object = { type: 'object', properties: {} };
const text = (value: string): unknown => ({ content: [{ type: 'text', text: value }] });

let tools: Record<string, unknown>[] = [
  {
    name: 'echo',
    description: 'Repeats a text.',
    inputSchema: {
      type: 'object',
      properties: { text: { type: 'string' } },
      required: ['text'],
    },
    annotations: { readOnlyHint: true, title: 'Echo' },
  },
  { name: 'remove', inputSchema: object, annotations: { destructiveHint: true } },
  ...[
    'slow',
    'crash',
    'big',
    'flood',
    'fail',
    'image',
    'change',
    'wrong',
    'environment',
    'ask',
    'progress',
  ].map((name) => ({ name, inputSchema: object })),
];
if (behaviour === 'collide') {
  tools = ['read file', 'read/file'].map((name) => ({ name, inputSchema: object }));
}
if (behaviour === 'output') {
  const size = { type: 'object', properties: { size: { type: 'number' } }, required: ['size'] };
  tools = [{ name: 'echo', inputSchema: object, outputSchema: size }];
}
if (behaviour === 'names') {
  tools = ['päth.list', 'x'.repeat(100)].map((name) => ({ name, inputSchema: object }));
}
if (behaviour === 'tasks') {
  tools = ['required', 'optional', 'lost', 'nonsense', 'broken', 'failing'].map((name) => ({
    name,
    inputSchema: object,
    execution: { taskSupport: name === 'optional' ? name : 'required' },
  }));
}
if (behaviour === 'hostile') {
  // Each tool has a schema for its input and its output, and answers with a value for which it is costly.
  tools = hostileSchemas.flatMap(({ schema }, at) => [
    { name: `input-${at}`, inputSchema: schema },
    { name: `output-${at}`, inputSchema: object, outputSchema: schema },
  ]);
}
if (behaviour === 'many') {
  tools = Array.from({ length: 50_000 }, (_, at) => ({ name: `t${at}`, inputSchema: object }));
}
if (behaviour === 'long') {
  const description = 'x'.repeat(200_000);
  tools = Array.from({ length: 15 }, (_, at) => ({
    name: `t${at}`,
    description,
    inputSchema: object,
  }));
}
if (behaviour === 'schema') {
  tools.push({ name: 'broken', inputSchema: { type: 'object', properties: { a: 7 } } });
}

function send(message: object): void {
  write(Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`));
}

/** Written at once: some of these end the process right after it. */
function write(line: Buffer): void {
  for (let at = 0; at < line.length; ) {
    try {
      at += writeSync(1, line, at);
    } catch (error) {
      if ((error as { code?: string }).code !== 'EAGAIN') throw error;
    }
  }
}

const calls: Record<string, (args: Record<string, unknown>) => unknown> = {
  echo: ({ text: said }) => text(`echo ${said}`),
  remove: () => text('removed'),
  slow: () => undefined,
  crash: () => process.exit(3),
  big: () => text('x'.repeat(50_000_000)),
  flood: () => {
    for (let n = 0; n < 50_000; n++) {
      send({ method: 'notifications/message', params: { level: 'info', data: n } });
    }
    return undefined;
  },
  fail: () => ({ isError: true, content: [{ type: 'text', text: 'No such file: a.txt' }] }),
  image: () => ({
    content: [
      { type: 'text', text: 'A picture' },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      { type: 'resource_link', uri: 'docs://1', name: 'One' },
      { type: 'resource', resource: { uri: 'docs://2', text: 'two', mimeType: 'text/plain' } },
    ],
  }),
  change: () => {
    tools = [{ name: 'added', inputSchema: object }];
    send({ method: 'notifications/tools/list_changed' });
    return text('changed');
  },
  added: () => text('added'),
  wrong: () => ({ content: 'not a list' }),
  environment: () => text(Object.keys(process.env).sort().join(' ')),
};

// Tasks of 2025, each named after its number. One is done when its state was read twice.
const tasks = new Map<string, { readonly tool: string; reads: number }>();

function createTask(tool: string): object {
  const taskId = `task-${tasks.size + 1}`;
  tasks.set(taskId, { tool, reads: 0 });
  return { result: { task: describeTask(taskId, 'working') } };
}

function describeTask(taskId: string, status: string): object {
  const at = new Date(0).toISOString();
  const times = { createdAt: at, lastUpdatedAt: at, ttl: null, pollInterval: 100 };
  return { taskId, status, statusMessage: 'Working', ...times };
}

function answerTask(method: string, taskId: string): object {
  const task = tasks.get(taskId);
  if (!task || task.tool === 'lost') return { error: { code: -32602, message: 'No such task' } };
  if (method === 'tasks/get') {
    if (task.tool === 'nonsense') return { result: { taskId, status: 7 } };
    task.reads += 1;
    return { result: describeTask(taskId, task.reads < 2 ? 'working' : 'completed') };
  }
  if (task.tool === 'broken') return { result: { content: 'not a list' } };
  if (task.tool === 'failing') {
    return { result: { isError: true, content: [{ type: 'text', text: 'It failed' }] } };
  }
  return { result: text(`result of ${taskId} after ${task.reads}`) };
}

/** The pages of a list of tools that were asked for. */
let pages = 0;
const pageSize = 10_000;

function page(from: number): object {
  pages += 1;
  const next = from + pageSize;
  return {
    tools: tools.slice(from, next),
    ...(next < tools.length && { nextCursor: String(next) }),
  };
}

/** Sends a list with a tool that is nested too deeply to be written as JSON in one piece. */
function deepList(id: Message['id']): undefined {
  const depth = 200_000;
  const deep = `${'{"properties":{"a":'.repeat(depth)}{}${'}}'.repeat(depth)}`;
  const input = `{"type":"object","properties":{"a":${deep}}}`;
  const listed = `${JSON.stringify(tools).slice(0, -1)},{"name":"deep","inputSchema":${input}}]`;
  const line = Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"tools":${listed}}}\n`);
  write(line);
  return undefined;
}

/** The answer to a message; without one, the client waits. */
function answer({ id, method, params = {} }: Message): object | undefined {
  if (behaviour === 'silent') return undefined;
  if (behaviour === 'garbage') writeSync(1, '<html>not JSON</html>\n{"jsonrpc": \n[1, 2]\n');
  if (method === 'initialize') {
    return {
      result: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'raw', version: '1' },
      },
    };
  }
  if (method === 'tools/list' && behaviour === 'deep') return deepList(id);
  if (method === 'tools/list') {
    return { result: behaviour === 'list' ? { tools: 'none' } : page(Number(params.cursor ?? 0)) };
  }
  if (method?.startsWith('tasks/')) return answerTask(method, String(params.taskId));
  if (method !== 'tools/call') return { error: { code: -32601, message: 'No method' } };
  const name = String(params.name);
  if (!tools.some((tool) => tool.name === name)) {
    return { error: { code: -32602, message: `Unknown tool: ${name}` } };
  }
  if (params.task !== undefined) return createTask(name);
  if (name.startsWith('output-')) {
    const { value } = hostileSchemas[Number(name.slice('output-'.length))] ?? {};
    return { result: { content: [], structuredContent: value } };
  }
  if (/^(input-|t)\d/.test(name)) return { result: text(`${pages} pages`) };
  const result = calls[name]?.(params.arguments as Record<string, unknown>);
  return result === undefined ? undefined : { result };
}

if (behaviour === 'exit') {
  writeSync(2, 'The secret key is missing.\n');
  process.exit(1);
}
// Asks for the name, then for the age, and repeats the answers.
const questions = ['Your name?', 'Your age?'];
const doublingSchema = {
  type: 'object',
  properties: { value: { type: 'string' } },
  anyOf: [{ $ref: '#' }, { $ref: '#' }],
};
const asking = new Map<string, { readonly id: unknown; readonly answers: string[] }>();
let asked = 0;

function ask(id: unknown, answers: string[]): void {
  const key = `ask-${asked++}`;
  asking.set(key, { id, answers });
  const message = questions[answers.length];
  const type = behaviour === 'numbers' && message === 'Your age?' ? 'number' : 'string';
  const plain = { type: 'object', properties: { value: { type } } };
  const value = behaviour === 'twice' ? doublingSchema : plain;
  send({ id: key, method: 'elicitation/create', params: { message, requestedSchema: value } });
}

function onAnswer({ id, result, error }: Message): void {
  const call = asking.get(String(id));
  if (!call) return;
  if (error) {
    const content = [{ type: 'text', text: JSON.stringify(error) }];
    return void send({ id: call.id, result: { isError: true, content } });
  }
  const answers = [...call.answers, JSON.stringify(result)];
  if (answers.length < questions.length) ask(call.id, answers);
  else send({ id: call.id, result: text(answers.join(' ')) });
}

/** Reports four steps at once, and never answers. */
function reportProgress({ params = {} }: Message): void {
  const { progressToken } = params._meta as { readonly progressToken: unknown };
  for (let progress = 1; progress <= 4; progress++) {
    send({ method: 'notifications/progress', params: { progressToken, progress, total: 9 } });
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line) as Message;
  if (message.method === undefined) return onAnswer(message);
  if (message.params?.name === 'ask') return ask(message.id, []);
  if (message.params?.name === 'progress') return reportProgress(message);
  if (message.id === undefined) return;
  const answered = answer(message);
  if (answered) send({ id: message.id, ...answered });
});
