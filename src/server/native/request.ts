import type { EventId } from '../../api/types.ts';
import { likely } from '../../core/closest.ts';
import { WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import { parseEventId } from '../../protocol/event-id.ts';
import { clientFrame } from '../../protocol/frames.ts';
import { checkMessagePage, type MessageOptions } from '../../protocol/message-page.ts';
import { steerRequest, turnRequest } from '../../protocol/requests.ts';
import { init, input } from '../../protocol/turn.ts';
import { short } from '../http/errors.ts';
import type { RequestContext } from '../http/server-context.ts';

/** The longest page that can be asked for. */
const maxItems = 200;

/** How many messages a page has when only `before` is given. */
const usualPage = 50;

/** `limit` and `cursor` of a list. */
export function pageQuery(c: RequestContext): {
  readonly limit?: number;
  readonly cursor?: string;
} {
  const limit = c.req.query('limit');
  const cursor = c.req.query('cursor');
  return {
    ...(limit !== undefined && { limit: parseLimit(limit) }),
    ...(cursor !== undefined && { cursor }),
  };
}

/** `last` and `before` of a page of messages. */
export function messageQuery(c: RequestContext): MessageOptions {
  const last = c.req.query('last');
  const before = c.req.query('before');
  if (last === undefined && before === undefined) return {};
  const messages = {
    last: wholeNumber(last ?? String(usualPage)),
    ...(before !== undefined && { before: wholeNumber(before) }),
  };
  checkMessagePage(messages);
  return { messages };
}

// Anything but digits is no number that a page could have; the check says what it should be.
function wholeNumber(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

/** A flag of the query: there, `true` or `1` is yes; absent, `false` or `0` is no. */
export function flagQuery(c: RequestContext, name: string): boolean {
  const value = c.req.query(name);
  switch (value) {
    case undefined:
    case 'false':
    case '0':
      return false;
    case '':
    case 'true':
    case '1':
      return true;
    default:
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `${name} must be true or false, not ${short(value)}.`,
      );
  }
}

/** The event to continue after, from the header that browsers set or from `?after=`. */
export function lastEventId(c: RequestContext): EventId | undefined {
  const id = c.req.header('last-event-id') ?? c.req.query('after');
  // A browser that has seen no event may send an empty header.
  if (id === undefined || id === '') return undefined;
  parseEventId(id);
  return id;
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxItems) return limit;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `limit must be a whole number from 1 to ${maxItems}, not ${short(text)}.`,
  );
}

interface Shape {
  readonly entries: Readonly<Record<string, unknown>>;
}

/**
 * Refuses fields that a body does not have, so that a misplaced or mistyped one is not ignored. Only for our own
 * protocol: the others must let through what their clients add.
 */
export function checkFields(
  value: Json | undefined,
  { entries }: Shape,
  what: string,
  hints: Readonly<Record<string, string>> = {},
): void {
  if (!isJsonObject(value)) return;
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(entries, name)) continue;
    const known = Object.keys(entries);
    const meant = likely(name, known);
    const guess =
      meant === undefined ? `The fields are: ${known.join(', ')}.` : `Did you mean "${meant}"?`;
    const hint = Object.hasOwn(hints, name) ? hints[name] : guess;
    throw new WaymarkError('INVALID_ARGUMENT', `Unknown field ${short(name)} of ${what}. ${hint}`);
  }
}

const form = '{"input":{"message":{"role":"user","content":[{"text":"…"}]}}}';
const textHint = `A message of the user is sent as ${form}.`;
const texts = { text: textHint, prompt: textHint, messages: textHint, content: textHint };
const ofInit = (name: string): string =>
  `It is a field of \`init\`: {"init":{"${name}":"…"},"input":{…}}.`;
const ofInput = (name: string): string => `It is a field of \`input\`: {"input":{"${name}":…}}.`;

const turnHints = {
  ...texts,
  ...Object.fromEntries(Object.keys(init.entries).map((name) => [name, ofInit(name)])),
  ...Object.fromEntries(Object.keys(input.entries).map((name) => [name, ofInput(name)])),
  message: textHint,
};

/** Refuses unknown fields of a turn, of its `init` and of its `input`, and says how a text is sent. */
export function checkTurnFields(body: Json): void {
  checkFields(body, turnRequest, 'a turn', turnHints);
  checkPlaces(body);
}

/** Refuses unknown fields of a message for a running turn. */
export function checkSteerFields(body: Json): void {
  checkFields(body, steerRequest, 'a message', texts);
  checkPlaces(body);
}

function checkPlaces(body: Json): void {
  if (!isJsonObject(body)) return;
  checkFields(body.init, init, '`init`');
  checkFields(body.input, input, '`input`', texts);
  const said = isJsonObject(body.input) ? body.input.message : body.input;
  if (typeof said === 'string') {
    throw new WaymarkError('INVALID_ARGUMENT', `The message is not an object. ${textHint}`);
  }
}

/** Refuses unknown fields of a frame of a WebSocket. */
export function checkFrameFields(frame: Json): void {
  const shape = isJsonObject(frame)
    ? clientFrame.options.find(({ entries }) => entries.type.literal === frame.type)
    : undefined;
  if (shape !== undefined) checkFields(frame, shape, 'a frame', turnHints);
  checkPlaces(frame);
}
