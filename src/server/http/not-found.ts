import { WaymarkError } from '../../core/error.ts';

/** The error for an id that is unknown to this caller, whether or not it exists for another owner. */
export function notFound(what: 'session' | 'snapshot' | 'artifact', id: string): WaymarkError {
  return new WaymarkError('NOT_FOUND', `There is no ${what} ${short(id)} here.`);
}

/** A text from outside, escaped and cut, to be put into a message. */
export function short(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 63)}…` : text);
}
