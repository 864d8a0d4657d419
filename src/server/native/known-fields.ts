import { likely } from '../../core/closest.ts';
import { invalid } from '../../core/error.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import { clientFrame } from '../../protocol/frames.ts';
import { steerRequest, turnRequest } from '../../protocol/requests.ts';
import { init, input } from '../../protocol/turn.ts';
import { short } from '../http/answer.ts';

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
    throw invalid(`Unknown field ${short(name)} of ${what}. ${hint}`);
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
    throw invalid(`The message is not an object. ${textHint}`);
  }
}

export function checkFrameFields(frame: Json): void {
  const shape = isJsonObject(frame)
    ? clientFrame.options.find(({ entries }) => entries.type.literal === frame.type)
    : undefined;
  if (shape !== undefined) checkFields(frame, shape, 'a frame', turnHints);
  checkPlaces(frame);
}
