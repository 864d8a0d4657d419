import { WaymarkError } from '../core/error.ts';
import type { Message } from '../protocol/message.ts';
import type { Input } from '../protocol/turn.ts';

/** The input of a turn: the user's text, a message, or a full input. */
export type TurnInput = string | Message | Input;

/** The input for a text or a message. */
export function toInput(given: TurnInput): Input {
  if (typeof given === 'string') {
    if (given === '') throw emptyInput();
    return { message: { role: 'user', content: [{ text: given }] } };
  }
  if (Array.isArray(given)) throw arrayInput();
  if (typeof given === 'object' && given !== null && 'role' in given) return { message: given };
  return given;
}

function emptyInput(): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    'The input is empty. Pass the text of the user, a message, or an input such as { message } or { resume }.',
  );
}

function arrayInput(): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    'The input is an array. Pass one text, message or input; to send several, call once for each, in order.',
  );
}
