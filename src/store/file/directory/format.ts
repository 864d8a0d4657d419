import { isJsonObject, type Json, type JsonObject, parseJson } from '../../../core/json/json.ts';
import { storeFault } from '../../rules/store-error.ts';
import { checkLine } from './checked-line.ts';
import { dataLoss } from './disk-error.ts';

/**
 * The format that this version writes. Since format 2 every line has a checksum, and a file of lines ends with an empty line.
 * A session's journal of format 1 is rewritten before something is appended to it. Since format 3 the data of artifacts is in separate files, and
 * since format 4 artifacts name files: an older version would remove those as unused.
 */
export const format = 4;

/** The format that a file says it has. */
export function formatOf(head: JsonObject): number {
  return typeof head.waymark === 'number' ? head.waymark : 0;
}

/** Checks the `waymark` field that every file of the store begins with. */
export function checkFormat(head: JsonObject, name: string): JsonObject {
  const found = head.waymark;
  if (typeof found !== 'number') throw dataLoss(name, 'it does not say which format it has');
  if (found <= format) return head;
  throw storeFault(
    'FAILED_PRECONDITION',
    `"${name}" of the file store has format ${found}; this version of waymark reads up to ${format}. Install a newer version.`,
    { details: { format: found, supported: format } },
  );
}

/** The content of a file that holds one object, checked against its format and its checksum. */
export function parseSealed(text: string, name: string): JsonObject {
  const line = Buffer.from(text.endsWith('\n') ? text.slice(0, -1) : text);
  let content: Json;
  try {
    content = parseJson(text, name);
  } catch (cause) {
    throw dataLoss(name, 'it is not JSON', cause);
  }
  if (!isJsonObject(content)) throw dataLoss(name, 'it is no object');
  checkFormat(content, name);
  checkLine(line, name, 'its content', formatOf(content) >= 2);
  return content;
}
