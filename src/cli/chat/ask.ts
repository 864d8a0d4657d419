import { isJsonObject, type Json } from '../../core/json/json.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';
import type { Input, Resume } from '../../protocol/turn.ts';
import type { Terminal } from '../terminal.ts';
import { safe, shortJson } from '../text/safe.ts';
import { type Ask, askForm, isForm } from './ask-form.ts';

type Answer =
  | { readonly type: 'restart'; readonly resumed: Json }
  | { readonly type: 'decline'; readonly reason: string }
  | { readonly type: 'answer'; readonly output: Json };

const declined = 'The user declined.';

/**
 * Asks about each interrupted tool call, and returns the input that answers them all; `undefined` at the end of the input.
 * "yes" runs the tool, "no" declines, and anything else is the answer in place of the tool.
 */
export async function askInterrupts(
  requests: readonly ToolRequestPart[],
  ask: Ask,
  terminal: Terminal,
): Promise<Input | undefined> {
  const answers = await askAll(requests, ask, terminal);
  if (answers === undefined) return undefined;
  const reasons = answers.map(([, answer]) =>
    answer.type === 'decline' ? answer.reason : undefined,
  );
  if (reasons.every((reason) => reason !== undefined)) {
    // A plain message declines all open requests, whatever the output schema of the tools.
    const text = ['No.', ...new Set(reasons.filter(Boolean))].join(' ');
    return { message: { role: 'user', content: [{ text }] } };
  }
  return { resume: toResume(answers) };
}

type Answers = readonly (readonly [ToolRequestPart, Answer])[];

async function askAll(
  requests: readonly ToolRequestPart[],
  ask: Ask,
  terminal: Terminal,
): Promise<Answers | undefined> {
  const answers: [ToolRequestPart, Answer][] = [];
  for (const request of requests) {
    const answer = await askOne(request, ask, terminal);
    if (answer === undefined) return undefined;
    answers.push([request, answer]);
  }
  return answers;
}

async function askOne(
  { toolRequest, metadata }: ToolRequestPart,
  ask: Ask,
  terminal: Terminal,
): Promise<Answer | undefined> {
  const data = metadata?.interrupt;
  const inner = innerRequests(data);
  if (inner !== undefined) return await askInside(inner, ask, terminal);
  const { style } = terminal;
  if (isForm(data)) {
    const resumed = await askForm(data, ask, terminal);
    return resumed === undefined ? undefined : { type: 'restart', resumed };
  }
  terminal.print(
    `${style.warn(`? ${safe(toolRequest.name)}`)} ${shortJson(toolRequest.input ?? {})}`,
  );
  const question = questionOf(data);
  if (question !== '') terminal.print(`  ${question}`);
  for (;;) {
    const line = await ask('  yes, no, or an answer: ');
    if (line === undefined) return undefined;
    if (line.trim() !== '') return told(toAnswer(line.trim()), data);
  }
}

/** Asks about the requests of an interrupted sub-agent, which gets all answers together. */
async function askInside(
  requests: readonly ToolRequestPart[],
  ask: Ask,
  terminal: Terminal,
): Promise<Answer | undefined> {
  const answers = await askAll(requests, ask, terminal);
  if (answers === undefined) return undefined;
  const first = answers.find(([, { type }]) => type === 'decline')?.[1];
  const isDeclined = answers.every(([, { type }]) => type === 'decline');
  if (isDeclined && first) return first;
  return { type: 'restart', resumed: toResume(answers) as unknown as Json };
}

function innerRequests(data: Json | undefined): readonly ToolRequestPart[] | undefined {
  if (!isJsonObject(data) || !Array.isArray(data.requests) || !('agent' in data)) return undefined;
  return data.requests.filter(
    (each: unknown): each is ToolRequestPart =>
      typeof each === 'object' && each !== null && 'toolRequest' in each,
  );
}

function questionOf(data: Json | undefined): string {
  if (data === undefined || data === true) return '';
  if (isJsonObject(data) && typeof data.question === 'string') return safe(data.question);
  return typeof data === 'string' ? safe(data) : shortJson(data, 400);
}

function toAnswer(text: string): Answer {
  if (/^y(es)?$/i.test(text)) return { type: 'restart', resumed: true };
  const [isNo, reason = ''] = /^no?\b[\s,.:]*(.*)$/is.exec(text) ?? [];
  if (isNo !== undefined) return { type: 'decline', reason };
  return { type: 'answer', output: asJson(text) };
}

/** A tool that asked for an approval gets the refusal and its reason. */
function told(answer: Answer, data: Json | undefined): Answer {
  if (answer.type !== 'decline' || !isJsonObject(data) || !('approval' in data)) return answer;
  return { type: 'restart', resumed: { approved: false, reason: answer.reason } };
}

function asJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

function toResume(answers: Answers): Resume {
  const respond: NonNullable<Resume['respond']> = [];
  const restart: NonNullable<Resume['restart']> = [];
  for (const [{ toolRequest }, answer] of answers) {
    const { name, ref } = toolRequest;
    if (answer.type === 'restart') {
      restart.push({ toolRequest, metadata: { resumed: answer.resumed } });
      continue;
    }
    const output =
      answer.type === 'answer' ? answer.output : [declined, answer.reason].join(' ').trim();
    respond.push({ toolResponse: { name, ...(ref !== undefined && { ref }), output } });
  }
  return { ...(respond.length > 0 && { respond }), ...(restart.length > 0 && { restart }) };
}
