import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { transformState } from '../../agent/persistence/transform.ts';
import { steeredBy } from '../../agent/turn/steer.ts';
import type { Json } from '../../core/json/json.ts';
import type { Message, Part } from '../../protocol/message.ts';
import type { Artifact, State } from '../../protocol/state.ts';
import { toolCallId, turnsOf } from '../http/turns-of.ts';
import { type AguiMessage, asText, fromUserParts, markOf, userMessageId } from './shapes.ts';

/** A user's message and everything up to the next one. */
export interface Exchange {
  readonly ids: ReadonlySet<string>;
  /** The id that the client gave the run of the user's message. */
  readonly runId?: string | undefined;
  /** The snapshot at its end; absent if the agent's policy made none. */
  readonly snapshotId?: string | undefined;
}

/** A session's messages as clients hold them. */
export interface History {
  readonly messages: readonly AguiMessage[];
  readonly exchanges: readonly Exchange[];
}

/**
 * Messages under the ids that they had when they were streamed: the client's own for those of the user, and the turn's snapshot
 * with a number for those of the agent. `runId` is the snapshot of a turn that has not ended.
 */
export function toHistory(stored: readonly Message[], runId?: string): History {
  const messages: AguiMessage[] = [];
  const exchanges: (Exchange & { ids: Set<string>; snapshotId?: string })[] = [];
  const begins = (message: Message, turn: readonly Message[]): boolean =>
    isInput(message) && turn.at(-1)?.role === 'model';
  for (const [at, turn] of turnsOf(stored, begins).entries()) {
    const id = turn.snapshotId ?? runId ?? `turn-${at}`;
    // The input of the turn before the model was asked: the user's message, and what closes open calls.
    const received = turn.messages.findLastIndex(isInput) + 1;
    for (const [place, message] of turn.messages.entries()) {
      const name = place < received ? `${id}:in${place}` : `${id}:${place - received}`;
      const converted = toMessages(message, name);
      if (isInput(message) || exchanges.length === 0) {
        const { runId: asked } = message.role === 'user' ? markOf(message) : {};
        exchanges.push({ ids: new Set(), runId: asked });
      }
      for (const each of converted) exchanges.at(-1)?.ids.add(each.id);
      messages.push(...converted);
    }
    const last = exchanges.at(-1);
    if (last && turn.snapshotId !== undefined) last.snapshotId = turn.snapshotId;
  }
  return { messages, exchanges };
}

/** Whether a turn began with a message. One that was added to the running turn belongs to what the turn says. */
function isInput(message: Message): boolean {
  return message.role === 'user' && steeredBy(message) === undefined;
}

function toMessages(message: Message, id: string): readonly AguiMessage[] {
  const { role, content } = message;
  switch (role) {
    case 'user':
      return [{ id: userMessageId(message, id), role: 'user', content: fromUserParts(content) }];
    case 'model':
      return [...reasoningOf(content, id), ...answerOf(content, id), ...resultsOf(content, id)];
    case 'tool':
      return resultsOf(content, id);
    case 'system':
      // The agent's own instructions.
      return [];
  }
}

function reasoningOf(content: readonly Part[], id: string): readonly AguiMessage[] {
  const texts = content.flatMap((part) => ('reasoning' in part ? [part.reasoning] : []));
  if (texts.length === 0) return [];
  return [{ id: `${id}:reasoning`, role: 'reasoning', content: texts.join('') }];
}

function answerOf(content: readonly Part[], id: string): readonly AguiMessage[] {
  const text = content.flatMap((part) => ('text' in part ? [part.text] : [])).join('');
  const calls = content.flatMap((part) => {
    if (!('toolRequest' in part)) return [];
    const { toolRequest } = part;
    const call = { name: toolRequest.name, arguments: asText(toolRequest.input ?? {}) };
    return [{ id: toolCallId(toolRequest), type: 'function', function: call }];
  });
  if (text === '' && calls.length === 0) return [];
  const toolCalls = calls.length > 0 ? calls : undefined;
  return [{ id, role: 'assistant', content: text || undefined, toolCalls }];
}

function resultsOf(content: readonly Part[], id: string): readonly AguiMessage[] {
  return content.flatMap((part) => {
    if (!('toolResponse' in part)) return [];
    const { toolResponse, metadata } = part;
    const call = toolCallId(toolResponse);
    const output = asText(toolResponse.output);
    const error = metadata?.error === undefined ? undefined : output;
    return [{ id: `${id}:${call}`, role: 'tool', toolCallId: call, content: output, error }];
  });
}

/** An artifact as the activity that clients show it as. */
export function activityOf(artifact: Artifact, place: number): AguiMessage {
  return {
    id: `artifact:${artifact.name ?? `#${place}`}`,
    role: 'activity',
    activityType: 'artifact',
    content: { ...artifact },
  };
}

/** The custom state that clients see: that of the thread, or the agent's initial one if the thread has not begun. */
export function shownCustom(agent: Agent, state: State | undefined): Json | undefined {
  if (state !== undefined) return state.custom as Json | undefined;
  const { initialState, transform } = internalsOf(agent).spec;
  if (initialState === undefined) return undefined;
  return transformState(transform, { custom: initialState })?.custom as Json | undefined;
}
