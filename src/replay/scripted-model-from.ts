import { failedPrecondition, type Status, WaymarkError } from '../core/error.ts';
import { contentHash } from '../core/json/hash.ts';
import type { Json } from '../core/json/json.ts';
import { createContextKey } from '../core/platform.ts';
import type { Model, ModelRequest, ModelResponse } from '../generate/model.ts';
import type { Message, Part } from '../protocol/message.ts';
import type { SessionExport } from '../session/export-session.ts';
import { type RecordedSession, type RecordedTurn, recordedSession } from './recorded-session.ts';

/** The turn that is being replayed, and how often its model was called. */
export interface ReplayedTurn {
  readonly turn: RecordedTurn;
  modelCalls: number;
}

export const replayedTurn = createContextKey<ReplayedTurn>('waymark.replayedTurn');

/** A recorded answer of the model, or the error that a failed turn ended with. */
interface RecordedAnswer {
  readonly response?: ModelResponse;
  readonly error?: WaymarkError;
}

/**
 * A model that gives the recorded answers of a session, so that a change of tools, state or code is tested without a model. In
 * `replay` it knows the turn. In your own tests it finds the answer by the user messages of the conversation and how many answers
 * came since; a conversation that was not recorded is FAILED_PRECONDITION.
 *
 * @example
 * const session = recordedSession(JSON.parse(await readFile('session.json', 'utf8')));
 * const { text } = await chat.run('Plan a trip', { model: scriptedModelFrom(session) });
 */
export function scriptedModelFrom(recording: RecordedSession | SessionExport): Model {
  const session = 'turns' in recording ? recording : recordedSession(recording);
  const { sessionId } = session.session;
  let known: ReadonlyMap<string, RecordedAnswer[]> | undefined;
  return {
    name: `recorded ${sessionId}`,
    provider: 'recorded',
    async run(request, call) {
      const replayed = replayedTurn.get();
      const isOurs = replayed?.turn.sessionId === sessionId;
      known ??= isOurs ? undefined : answersByPlace(session.turns);
      const answer = isOurs
        ? answersOf(replayed.turn)[replayed.modelCalls++]
        : find(known ?? new Map(), request);
      if (answer === undefined) throw notRecorded(sessionId);
      const { response, error } = answer;
      if (response !== undefined) await call.stream({ content: response.message.content });
      if (error !== undefined) throw error;
      if (response === undefined) throw notRecorded(sessionId);
      return response;
    },
  };
}

/** The answers of a turn's model, in order. The usage of the turn is that of its last call. */
function answersOf(turn: RecordedTurn): RecordedAnswer[] {
  const messages = turn.messages.filter(({ role }) => role === 'model');
  const failure = turn.error && new WaymarkError(turn.error.status as Status, turn.error.message);
  const answers = messages.map((message, place): RecordedAnswer => {
    const isLast = place === messages.length - 1;
    const response = responseOf(message, turn, isLast);
    // A failed turn ends with what there was of an answer.
    const isCut = isLast && failure !== undefined && turn.messages.at(-1) === message;
    return isCut ? { response, error: failure } : { response };
  });
  return failure === undefined ? answers : [...answers, { error: failure }];
}

function responseOf(
  { role, content, metadata }: Message,
  { finishReason = 'stop', usage }: RecordedTurn,
  isLast: boolean,
): ModelResponse {
  const given = isLast && finishReason !== 'interrupted' && finishReason !== 'failed';
  return {
    message: { role, content: content.map(asAnswered), ...(metadata && { metadata }) },
    finishReason: given ? finishReason : 'stop',
    usage: isLast ? (usage ?? {}) : {},
  };
}

/** A part as the model gave it, without what became of a tool request. */
function asAnswered(part: Part): Part {
  if (!('toolRequest' in part) || part.metadata === undefined) return part;
  const { interrupt, pendingOutput, pendingContent, error, recorded, ...metadata } = part.metadata;
  const { toolRequest } = part;
  return Object.keys(metadata).length === 0 ? { toolRequest } : { toolRequest, metadata };
}

/** Answers by the user messages before them and how many answers came since; and by the last user message alone. */
function answersByPlace(turns: readonly RecordedTurn[]): ReadonlyMap<string, RecordedAnswer[]> {
  const places = new Map<string, RecordedAnswer[]>();
  const put = (key: string, answer: RecordedAnswer): void => {
    places.set(key, [...(places.get(key) ?? []), answer]);
  };
  for (const turn of turns) {
    const { message } = turn.input;
    const before = [...turn.before.messages, ...(message ? [message] : [])];
    const users = before.filter(({ role }) => role === 'user');
    const since = answersSince(before);
    for (const [place, answer] of answersOf(turn).entries()) {
      put(keyOf(users, since + place), answer);
      put(keyOf(users.slice(-1), since + place), answer);
    }
  }
  return places;
}

/** The recorded answer to a request; equal conversations get theirs in the order of the recording. */
function find(
  places: ReadonlyMap<string, RecordedAnswer[]>,
  { messages }: ModelRequest,
): RecordedAnswer | undefined {
  const users = messages.filter(({ role }) => role === 'user');
  const since = answersSince(messages);
  const found = places.get(keyOf(users, since)) ?? places.get(keyOf(users.slice(-1), since)) ?? [];
  return found.length > 1 ? found.shift() : found[0];
}

function answersSince(messages: readonly Message[]): number {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  return messages.slice(at + 1).filter(({ role }) => role === 'model').length;
}

function keyOf(users: readonly Message[], since: number): string {
  const said = users.map(({ content }) => content) as unknown as Json;
  return `${contentHash(said)} ${since}`;
}

function notRecorded(sessionId: string): WaymarkError {
  return failedPrecondition(
    `Session "${sessionId}" has no recorded answer to this request. Its model was called more often, or with other messages, than when the session was recorded.`,
  );
}
