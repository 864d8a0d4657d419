import {
  type Interrupt,
  type InterruptAnswer,
  interruptsOf,
  toResume,
} from '../../api/interrupts.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';
import type { Input } from '../../protocol/turn.ts';
import type { Terminal } from '../terminal.ts';
import { safe, shortJson } from '../text/safe.ts';
import { type Ask, askForm, isForm } from './ask-form.ts';

/**
 * Asks about each interrupted tool call, and returns the input that answers them all; `undefined` at the end of the input.
 * "yes" runs the tool, "no" declines, and anything else is the answer in place of the tool.
 */
export async function askInterrupts(
  requests: readonly ToolRequestPart[],
  ask: Ask,
  terminal: Terminal,
): Promise<Input | undefined> {
  const interrupts = interruptsOf({ role: 'model', content: [...requests] });
  const answers = await askAll(interrupts, ask, terminal);
  return answers && { resume: toResume([...answers.values()]) };
}

async function askAll(
  interrupts: readonly Interrupt[],
  ask: Ask,
  terminal: Terminal,
): Promise<ReadonlyMap<Interrupt, InterruptAnswer> | undefined> {
  const answers = new Map<Interrupt, InterruptAnswer>();
  for (const interrupt of interrupts) {
    const answer = await askOne(interrupt, ask, terminal);
    if (answer === undefined) return undefined;
    answers.set(interrupt, answer);
  }
  return answers;
}

async function askOne(
  interrupt: Interrupt,
  ask: Ask,
  terminal: Terminal,
): Promise<InterruptAnswer | undefined> {
  const { interrupts, metadata: data, toolName, input } = interrupt;
  if (interrupts.length > 0) {
    const inside = await askAll(interrupts, ask, terminal);
    return inside && interrupt.resume((inner) => inside.get(inner) ?? inner.decline());
  }
  const { style } = terminal;
  if (isForm(data)) {
    const resumed = await askForm(data, ask, terminal);
    return resumed === undefined ? undefined : interrupt.approve({ resumed });
  }
  terminal.print(`${style.warn(`? ${safe(toolName)}`)} ${shortJson(input ?? {})}`);
  const question = questionOf(data);
  if (question !== '') terminal.print(`  ${question}`);
  for (;;) {
    const line = await ask('  yes, no, or an answer: ');
    if (line === undefined) return undefined;
    if (line.trim() !== '') return toAnswer(interrupt, line.trim());
  }
}

function questionOf(data: Json): string {
  if (data === null || data === true) return '';
  if (isJsonObject(data) && typeof data.question === 'string') return safe(data.question);
  return typeof data === 'string' ? safe(data) : shortJson(data, 400);
}

function toAnswer(interrupt: Interrupt, text: string): InterruptAnswer {
  if (/^y(es)?$/i.test(text)) return interrupt.approve();
  const [isNo, reason = ''] = /^no?\b[\s,.:]*(.*)$/is.exec(text) ?? [];
  if (isNo === undefined) return interrupt.respond(asJson(text));
  return interrupt.decline(reason === '' ? undefined : reason);
}

function asJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
