import { isWaymarkError } from '../../../core/error.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../../core/json/json.ts';
import { packEvents } from '../../rules/event-body.ts';
import { checkLine, format, toLine } from '../checked-line.ts';
import type { Disk } from '../disk.ts';
import {
  eventsFolder,
  fileName,
  filesName,
  journalName,
  requestsFolder,
  runsFolder,
  sessionsFolder,
  spendFolder,
  trashFolder,
  uploadsFolder,
} from '../layout.ts';
import { toArtifactLine } from '../session-tree.ts';
import { type OldArtifact, OldArtifacts } from './old-artifacts.ts';

/*
 * Stores of formats 1 to 4 had artifacts in separate files, their long texts in a file of chunks, and dead letters in a folder. Format 1
 * had no checksums. Lines that are damaged stay as they are, so that `verify` reports them.
 */

const stagingFolder = 'converted';
const deadFolder = 'dead';
const oldFiles: readonly string[] = [
  sessionsFolder,
  runsFolder,
  eventsFolder,
  requestsFolder,
  spendFolder,
  uploadsFolder,
  deadFolder,
  trashFolder,
  'intent.json',
  'lock-mark',
];

/** The folder that keeps the files of an earlier format. */
function backupFolder(found: number): string {
  return `backup-format-${found}`;
}

/**
 * Converts a store of an earlier format, under the lock. The files are first written to a separate folder. Then the old ones are moved to a
 * backup folder and the new ones to their places. If the process dies, the next one that opens the store continues.
 */
export function convert(disk: Disk, found: number, writeFormat: () => void): void {
  if (disk.stat(stagingFolder) === undefined) {
    const temporary = `${stagingFolder}.tmp`;
    disk.remove(temporary);
    disk.makeFolder(temporary);
    convertSessions(disk, temporary);
    convertOthers(disk, temporary);
    disk.rename(temporary, stagingFolder);
  }
  const backup = backupFolder(found);
  for (const name of oldFiles) {
    const isConverted = disk.stat(`${stagingFolder}/${name}`) !== undefined;
    const isMoved = disk.stat(`${backup}/${name}`) !== undefined;
    if (!isMoved && disk.stat(name) !== undefined) disk.rename(name, `${backup}/${name}`);
    if (isConverted) disk.rename(`${stagingFolder}/${name}`, name);
  }
  writeFormat();
  disk.remove(stagingFolder);
}

function convertSessions(disk: Disk, target: string): void {
  const letters = readLetters(disk);
  for (const owner of namesIn(disk, sessionsFolder)) {
    for (const scope of namesIn(disk, owner)) {
      for (const name of namesIn(disk, scope)) {
        if (name.endsWith('.json')) copyObject(disk, name, target);
        else if (disk.stat(`${name}/${journalName}`) !== undefined) {
          convertTree(disk, name, target, letters);
        }
      }
    }
  }
}

function convertTree(
  disk: Disk,
  folder: string,
  target: string,
  letters: ReadonlyMap<string, JsonObject>,
): void {
  const artifacts = new OldArtifacts(disk, folder);
  const written = new Set<string>();
  const sessions = new Set<string>();
  let head: JsonObject = {};
  const toLines = function* (line: JsonObject, isHead: boolean): Generator<string, void> {
    if (isHead) {
      head = line;
      yield toLine({ ...line, waymark: format });
      return;
    }
    for (const hash of artifactsOf(line)) {
      const artifact = written.has(hash) ? undefined : artifacts.read(hash);
      written.add(hash);
      if (artifact === undefined) continue;
      linkFiles(disk, folder, target, artifact);
      yield toArtifactLine(hash, artifact.content);
    }
    if (isJsonObject(line.session ?? null)) sessions.add(String((line.session as JsonObject).id));
    yield toLine(line);
  };
  const last = function* (): Generator<string, void> {
    for (const id of sessions) {
      for (const [run, { session, agent, owner, ...dead }] of letters) {
        if (session !== id || agent !== head.agent || owner !== head.owner) continue;
        const since = new Date(Number(dead.since)).toISOString();
        const { inputsDone, request } = dead;
        yield toLine({ session: { id }, dead: [{ run, since, inputsDone, request }] });
      }
    }
  };
  copyLines(disk, `${folder}/${journalName}`, target, toLines, last);
}

/** The hashes of the artifacts in the states of a line. */
function artifactsOf({ snapshots }: JsonObject): readonly string[] {
  const rows = Array.isArray(snapshots) ? snapshots : [];
  return rows.flatMap((row) => {
    const state = isJsonObject(row) ? row.state : undefined;
    const hashes = state !== undefined && isJsonObject(state) ? state.artifacts : undefined;
    return Array.isArray(hashes) ? hashes.map(String) : [];
  });
}

/** Puts the saved files of an artifact where format 5 has them. */
function linkFiles(disk: Disk, folder: string, target: string, { files }: OldArtifact): void {
  for (const hash of files) {
    const from = `${folder}/artifacts/${fileName(hash)}`;
    if (disk.stat(from) === undefined) continue;
    disk.link(from, `${target}/${folder}/${filesName}/${fileName(hash)}`);
  }
}

function convertOthers(disk: Disk, target: string): void {
  for (const name of namesIn(disk, runsFolder)) copyLines(disk, name, target, withHead);
  for (const name of namesIn(disk, eventsFolder)) copyLines(disk, name, target, eventLine);
  for (const name of namesIn(disk, requestsFolder)) copyObject(disk, name, target);
  for (const name of namesIn(disk, spendFolder)) copyLines(disk, name, target, spendLine);
  for (const folder of namesIn(disk, uploadsFolder)) {
    for (const name of namesIn(disk, folder)) disk.link(name, `${target}/${name}`);
  }
}

function namesIn(disk: Disk, folder: string): readonly string[] {
  const names = disk.list(folder).filter((name) => !name.endsWith('.tmp'));
  return names.map((name) => `${folder}/${name}`);
}

/** The dead letters by the id of their run. */
function readLetters(disk: Disk): ReadonlyMap<string, JsonObject> {
  const letters = new Map<string, JsonObject>();
  for (const name of namesIn(disk, deadFolder)) {
    const [line] = linesIn(readAll(disk, name), { isObject: true });
    const letter = line && parsed(line, name);
    if (letter !== undefined) letters.set(String(letter.run), letter);
  }
  return letters;
}

/** The lines that take the place of one. */
type ToLines = (line: JsonObject, isHead: boolean) => Iterable<string>;

function* withHead(line: JsonObject, isHead: boolean): Generator<string, void> {
  yield toLine(isHead ? { ...line, waymark: format } : line);
}

function* spendLine(line: JsonObject, isHead: boolean): Generator<string, void> {
  const { waymark: _, ...content } = line;
  if (isHead) yield toLine({ waymark: format });
  yield toLine(content);
}

function* eventLine(line: JsonObject, isHead: boolean): Generator<string, void> {
  const { events } = line;
  if (isHead || !Array.isArray(events)) yield* withHead(line, isHead);
  else yield toLine({ ...line, events: events.flatMap(packed) });
}

/** Events as a batch; version 0.1 wrote them one by one. */
function packed(event: unknown): object {
  if (typeof event !== 'object' || event === null || 'body' in event) return event as object;
  const one = event as Parameters<typeof packEvents>[0][number];
  return { attempt: one.attempt, body: packEvents([one]) };
}

/** Writes a file with one object to the same place in another folder. */
function copyObject(disk: Disk, name: string, target: string): void {
  const [line] = linesIn(readAll(disk, name), { isObject: true });
  if (line === undefined) return;
  const content = parsed(line, name);
  const text = content === undefined ? line : toLine({ ...content, waymark: format });
  disk.replace(`${target}/${name}`, [text, '\n']);
}

/** Writes the lines of a file to the same place in another folder. An unfinished line at the end is left out. */
function copyLines(
  disk: Disk,
  name: string,
  target: string,
  toLines: ToLines,
  last: () => Iterable<string> = () => [],
): void {
  const lines = [...linesIn(readAll(disk, name))];
  // The file of a run that has ended, or one that a process died with.
  if (lines.length === 0) return;
  const content = function* (): Generator<Buffer | string, void> {
    for (const [number, line] of lines.entries()) {
      const content = parsed(line, name);
      if (content === undefined) yield Buffer.concat([line, newline]);
      else for (const text of toLines(content, number === 0)) yield `${text}\n`;
    }
    for (const text of last()) yield `${text}\n`;
    // The empty line at the end of a journal.
    yield '\n';
  };
  disk.replace(`${target}/${name}`, content());
}

function readAll(disk: Disk, name: string): Buffer {
  return disk.open(name, ({ size, read }) => read(0, size())) ?? Buffer.alloc(0);
}

const newline = Buffer.from('\n');

/** The whole lines in some bytes, without empty ones. A file with one object need not end with a line feed. */
function* linesIn(bytes: Buffer, { isObject = false } = {}): Generator<Buffer, void> {
  let start = 0;
  for (let at = bytes.indexOf('\n'); at >= 0; at = bytes.indexOf('\n', start)) {
    if (at > start) yield bytes.subarray(start, at);
    start = at + 1;
  }
  if (isObject && start < bytes.length) yield bytes.subarray(start);
}

/** A line without its checksum; `undefined` when it is damaged. */
function parsed(line: Buffer, name: string): JsonObject | undefined {
  try {
    const value = parseJson(line.toString('utf8'), name);
    if (!isJsonObject(value)) return undefined;
    const { crc, ...content } = value;
    if (crc !== undefined) checkLine(line, name, 'a line');
    return content;
  } catch (error) {
    if (isWaymarkError(error)) return undefined;
    throw error;
  }
}
