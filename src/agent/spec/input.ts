import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Input } from '../../protocol/turn.ts';

/**
 * What an agent over a prompt takes: a user's message, answers to interrupts, or a message behind answers that need no tool to
 * run.
 */
export function checkPromptInput({ message, resume, detach }: Input): void {
  if (message !== undefined && resume?.restart !== undefined) {
    throw refused(
      'A message can follow answers of `resume.respond` only. Send it after the tools of `resume.restart` have run.',
    );
  }
  if (resume !== undefined && message === undefined) return;
  if (message === undefined) {
    // A bare detach sends nothing: it leaves what is queued to the background.
    if (detach === true) return;
    throw refused('The input has neither `message` nor `resume`. Pass one of them.');
  }
  if (message.role !== 'user') {
    throw refused(
      `A message of role "${message.role}" cannot start a turn. Expected a user message.`,
    );
  }
  if (message.content.length === 0) throw refused('The message is empty.');
  if (message.content.some((part) => 'toolRequest' in part || 'toolResponse' in part)) {
    throw refused('A message cannot carry tool parts. Answer an interrupt with `resume`.');
  }
}

/** A custom agent decides for itself, but takes no empty input. */
export function checkCustomInput({ message, resume, detach }: Input): void {
  if (message === undefined && resume === undefined && detach !== true) {
    throw refused('The input has neither `message` nor `resume`. Pass one of them.');
  }
}

/** Whether an input was refused for what it says, and another one may be taken. */
export function isInputError(error: unknown): boolean {
  return (
    isWaymarkError(error) &&
    ['INVALID_ARGUMENT', 'FAILED_PRECONDITION', 'NOT_FOUND'].includes(error.status)
  );
}

function refused(message: string): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', message);
}
