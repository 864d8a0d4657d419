import * as v from 'valibot';
import type { Agent } from '../../agent/spec/agent.ts';
import { toResume } from '../../api/interrupts.ts';
import { WaymarkError } from '../../core/error.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Init, Input } from '../../protocol/turn.ts';
import { notFound, short } from '../http/errors.ts';
import { type OpenCall, openAgentCall } from '../http/server-context.ts';
import { codes, type Fields, McpError } from './errors.ts';
import { inputRequired, waitingResult } from './interrupted.ts';
import type { McpRequest, McpServer } from './mcp-server.ts';
import { questionsOf } from './questions.ts';
import type { Asked } from './request-state.ts';
import { toolArguments } from './tools.ts';

const object = v.record(v.string(), v.unknown());

const callParams = v.object({
  name: v.string(),
  arguments: v.optional(object, {}),
  requestState: v.optional(v.string()),
  inputResponses: v.optional(object, {}),
});

/** What a call asks for: a turn, or a result that needs none. */
export type ToolCall = OpenCall &
  ({ readonly init: Init; readonly input: Input } | { readonly result: Fields });

/** Reads a tool call, and asks whether its caller may make it. */
export async function openToolCall(mcp: McpServer, request: McpRequest): Promise<ToolCall> {
  const parsed = v.safeParse(callParams, request.params);
  if (!parsed.success) {
    throw new McpError(codes.invalidParams, 'Expected params with a name and arguments.');
  }
  const { name, requestState, inputResponses } = parsed.output;
  const agent = mcp.offered().get(name);
  if (!agent) throw new McpError(codes.invalidParams, `There is no tool ${short(name)}.`);
  if (requestState !== undefined && request.era.kind === 'modern') {
    const asked = mcp.states.open(requestState, request.c.get('caller').principal);
    return await openAnswer(mcp, request, { agent, asked, inputResponses });
  }
  const args = parseShape(toolArguments, parsed.output.arguments, 'input of the tool');
  const { message, sessionId, snapshotId } = args;
  const init = {
    ...(sessionId !== undefined && { sessionId }),
    ...(snapshotId !== undefined && { snapshotId }),
  };
  const open = await openAgentCall(mcp.serverContext, request.c, {
    agent,
    operation: 'runTurn',
    ...init,
  });
  return { ...open, init, input: { message: { role: 'user', content: [{ text: message }] } } };
}

async function openAnswer(
  mcp: McpServer,
  request: McpRequest,
  {
    agent,
    asked: { agent: name, sessionId, snapshotId },
    inputResponses,
  }: { readonly agent: Agent; readonly asked: Asked; readonly inputResponses: Fields },
): Promise<ToolCall> {
  if (name !== agent.name) {
    throw new WaymarkError('INVALID_ARGUMENT', 'This request state belongs to another tool.');
  }
  const subject = { agent, operation: 'runTurn', sessionId, snapshotId } as const;
  const open = await openAgentCall(mcp.serverContext, request.c, subject);
  const snapshot = await agent.getSnapshot({ snapshotId }, open.options);
  if (!snapshot) throw notFound('snapshot', snapshotId);
  const questions = await questionsOf(agent, snapshotId, snapshot.interrupts);
  if (questions.some(({ key }) => !Object.hasOwn(inputResponses, key))) {
    const result = inputRequired(mcp, { agent, sessionId, snapshotId, questions }, open.caller);
    return { ...open, result };
  }
  const answers = questions.flatMap(({ key, answer }) => answer(inputResponses[key]) ?? []);
  if (answers.length < questions.length) {
    return { ...open, result: waitingResult({ sessionId, snapshotId }, snapshot.interrupts) };
  }
  return { ...open, init: { sessionId, ifHead: snapshotId }, input: { resume: toResume(answers) } };
}
