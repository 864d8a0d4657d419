import { WaymarkError } from '../core/error.ts';
import type { Message } from '../protocol/message.ts';
import type { Input } from '../protocol/turn.ts';
import { type InterruptAnswer, isAnswer, toResume } from './interrupts.ts';

/** The input of a turn that answers interrupts: what `approve`, `respond` or `decline` of an interrupt returned, or several of them. */
export interface AnswerInput extends Omit<Input, 'resume'> {
  /** The answers. */
  readonly resume: InterruptAnswer | readonly InterruptAnswer[];
}

/** The input of a turn: the user's text, a message, a full input, or answers to interrupts. */
export type TurnInput = string | Message | Input | AnswerInput;

/** The input for a text or a message. */
export function toInput(given: TurnInput): Input {
  if ((given ?? '') === '') {
    throw invalid(
      "The input is empty. Pass the user's text, a message, or an input such as { message } or { resume }.",
    );
  }
  if (typeof given === 'string') return { message: { role: 'user', content: [{ text: given }] } };
  if (Array.isArray(given)) {
    throw invalid('The input is an array. Pass one input per call.');
  }
  // Other types are refused where the input is parsed.
  if (typeof given !== 'object') return given;
  if ('role' in given) return { message: given };
  const { resume } = checkFields(given);
  if (Array.isArray(resume) || isAnswer(resume)) return { ...given, resume: toResume(resume) };
  return given as Input;
}

/** Refuses an input that says nothing under our names, such as `{ prompt }`. */
function checkFields(given: Input | AnswerInput): Input | AnswerInput {
  const [other] = Object.keys(given);
  const { message, resume, detach } = given;
  if (message !== undefined || resume !== undefined || detach !== undefined || !other) return given;
  throw invalid(
    `The input has "${other}", but neither \`message\` nor \`resume\`. Pass the user's text or a message.`,
  );
}

function invalid(message: string): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', message);
}
