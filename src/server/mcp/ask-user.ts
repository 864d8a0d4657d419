import type { InterruptAnswer } from '../../api/interrupts.ts';
import type { Fields } from './errors.ts';
import { canBeAsked, peerOf } from './legacy-session.ts';
import type { McpRequest, McpServer } from './mcp-server.ts';
import type { Question } from './questions.ts';
import type { StreamIo } from './stream-answer.ts';

/** Whether the user of a client of the 2025 revisions can be asked on the stream of this request. */
export function canAsk({ era, c }: McpRequest, { isStream }: StreamIo): boolean {
  return era.kind === 'legacy' && isStream && canBeAsked(peerOf(c));
}

/** Asks one question after the other, on the stream of the request; `undefined` when one is not answered. */
export async function* askUser(
  { dialogs }: McpServer,
  { c }: McpRequest,
  questions: readonly Question[],
  { reader }: StreamIo,
): AsyncGenerator<readonly Fields[], readonly InterruptAnswer[] | undefined> {
  const answers: InterruptAnswer[] = [];
  for (const { params, answer } of questions) {
    const { id, reply } = dialogs.ask(peerOf(c), reader);
    yield [{ jsonrpc: '2.0', id, method: 'elicitation/create', params }];
    const { result } = await reply;
    const given = result && answer(result);
    if (given === undefined) return undefined;
    answers.push(given);
  }
  return answers;
}
