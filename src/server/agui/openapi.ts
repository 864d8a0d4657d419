import { type DescribedRoute, protocolDocument } from '../http/protocol-document.ts';

const text = { type: 'string' };
const anything = { type: 'object' };
const many = { type: 'array', items: anything };
const object = (properties: object, required: readonly string[] = []): object => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});

const schemas = {
  RunAgentInput: object(
    {
      threadId: text,
      runId: text,
      parentRunId: text,
      messages: many,
      tools: many,
      context: many,
      state: {},
      forwardedProps: {},
      resume: many,
    },
    ['threadId', 'runId', 'messages'],
  ),
  Capabilities: anything,
  Nothing: anything,
  Error: object({ status: text, message: text, details: {} }, ['status', 'message']),
};

const routes: readonly DescribedRoute[] = [
  {
    name: 'run',
    method: 'POST',
    path: '/:agent',
    summary: 'Runs a turn of an agent, and streams its events.',
    body: 'RunAgentInput',
    answer: 'Nothing',
    events: 'always',
  },
  {
    name: 'capabilities',
    method: 'GET',
    path: '/:agent',
    summary: 'What an agent can do.',
    answer: 'Capabilities',
  },
  {
    name: 'connect',
    method: 'GET',
    path: '/:agent/:thread',
    summary: 'The messages and the state of a thread, and the events of the current run.',
    answer: 'Nothing',
    events: 'always',
  },
  {
    name: 'cancel',
    method: 'POST',
    path: '/:agent/:thread/cancel',
    summary: 'Stops the run of a thread, and keeps its partial answer.',
    answer: 'Nothing',
  },
];

/** The routes of AG-UI as an OpenAPI document. What they carry is defined by the protocol. */
export function aguiDocument(): object {
  return protocolDocument({ title: 'Waymark as AG-UI agents', server: '/agui', routes, schemas });
}
