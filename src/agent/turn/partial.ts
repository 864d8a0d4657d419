import { closeToolRequests } from '../../generate/tool/resume.ts';
import type { PartialAnswer } from '../../protocol/messages/streamed-parts.ts';
import type { ModelChunk } from '../../protocol/turn.ts';
import type { WorkingState } from '../../session/working-state.ts';
import { lastRound } from './turn-state.ts';

/** After a stop: keeps the partial answer as a message, and closes open tool requests so that every provider accepts the history. */
export function keepPartialAnswer(stopped: {
  readonly working: WorkingState;
  readonly partial: PartialAnswer;
}): void {
  const { working, partial } = stopped;
  const { content } = partial;
  if (content.length > 0) working.addMessages([{ role: 'model', content: [...content] }]);
  const closing = closeToolRequests(lastRound(working.state.history), 'aborted');
  if (closing !== undefined) working.addMessages([closing]);
}

/** Collects what the model says, in case the turn is stopped. */
export function noteChunk(partial: PartialAnswer, { role = 'model', content }: ModelChunk): void {
  if (role === 'model') for (const part of content) partial.add(part);
}
