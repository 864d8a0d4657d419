import { invalid, WaymarkError } from '../../core/error.ts';
import { type Json, type JsonObject, jsonLength, toJson } from '../../core/json/json.ts';

/**
 * How large the fields may be that appear in lists. Together with the length of a page they bound the size of a list:
 * 200 sessions are at most 4 MB.
 */
const maxTitleLength = 1_000;
const maxLabelLength = 256;
/** Characters of the metadata as JSON. */
const maxMetadataLength = 16_384;

/** Characters of the custom state as JSON, unless the agent's `limits` say otherwise. */
export const maxCustomLength = 16 * 1024 * 1024;

/** Bytes of a file, unless the agent's `limits` or the caller say otherwise. */
export const maxFileSize: number = 1024 * 1024 * 1024;

export function checkTitle(title: unknown): string {
  return checkText(title, 'title', maxTitleLength);
}

export function checkLabel(label: unknown): string {
  return checkText(label, 'label', maxLabelLength);
}

/** A session's metadata, checked and copied before they are written. */
export function checkMetadata(metadata: JsonObject): JsonObject {
  // The copy of an object is one.
  const json = toJson(metadata, 'The metadata') as JsonObject;
  const { length } = JSON.stringify(json);
  if (length <= maxMetadataLength) return json;
  throw tooLong('metadata of a session', length, maxMetadataLength, 'characters of JSON');
}

export function checkCustomSize(custom: Json, most: number): void {
  const length = jsonLength(custom, most);
  if (length <= most) return;
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The custom state is longer than ${most} characters of JSON. Keep large content in artifacts, or raise \`limits.session.customLength\`.`,
    { details: { limit: 'session.customLength', most } },
  );
}

function checkText(text: unknown, what: string, most: number): string {
  if (typeof text !== 'string') throw invalid(`The ${what} must be a string.`);
  if (text.length > most) throw tooLong(what, text.length, most, 'characters');
  return text;
}

function tooLong(what: string, length: number, most: number, unit: string): WaymarkError {
  const [given, maximum] = [length, most].map((count) => count.toLocaleString('en'));
  return invalid(`The ${what} has ${given} ${unit}; the maximum is ${maximum}.`);
}
