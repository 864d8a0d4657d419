import { closeToolRequests } from '../../generate/open-requests.ts';
import type { PartialAnswer } from '../../generate/partial-answer.ts';
import type { ModelChunk } from '../../protocol/turn.ts';
import type { WorkingState } from '../../session/working-state.ts';
import { lastRound } from './turn-state.ts';

/** After a stop: what was said so far becomes the answer, and no tool request stays open, so that any provider takes it. */
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

/** Takes note of what the model says, for the case that the turn is stopped. */
export function noteChunk(partial: PartialAnswer, { role = 'model', content }: ModelChunk): void {
  if (role === 'model') for (const part of content) partial.add(part);
}
