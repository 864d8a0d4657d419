import type { JsonObject } from '../../../core/json/json.ts';
import { format, toLine } from '../checked-line.ts';
import type { Disk } from '../disk.ts';
import {
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
import { namesIn, type OldLine, readLines } from './old-lines.ts';
import { OldRuns } from './old-runs.ts';
import { newLines } from './old-tree.ts';

/*
 * Formats 1 to 5 had files for runs, events and request ids; since format 6 these are in the journals of their sessions. Formats 1 to 4
 * had artifacts in separate files, their long texts in a file of chunks, and dead letters in a folder. Format 1 had no checksums. Lines
 * that are damaged stay as they are, so that `verify` reports them.
 */

const stagingFolder = 'converted';
const oldFiles: readonly string[] = [
  sessionsFolder,
  runsFolder,
  'events',
  requestsFolder,
  spendFolder,
  uploadsFolder,
  'dead',
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
    convertTo(disk, temporary);
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

function convertTo(disk: Disk, target: string): void {
  const write = (name: string, lines: Iterable<Buffer | string>): void =>
    disk.replace(`${target}/${name}`, lines);
  const point = (name: string, folder: string): void =>
    write(name, [toLine({ waymark: format, folder }), '\n']);
  const runs = new OldRuns(disk);
  for (const [name, bytes] of runs.damaged) write(name, [bytes, '\n']);
  const scopes = namesIn(disk, sessionsFolder).flatMap((owner) => namesIn(disk, owner));
  for (const scope of scopes) {
    for (const name of namesIn(disk, scope)) {
      if (name.endsWith('.json')) {
        const [line] = readLines(disk, name, { isObject: true });
        if (line?.content !== undefined) point(name, `${scope}/${String(line.content.folder)}`);
        else if (line !== undefined) write(name, [line.bytes, '\n']);
        continue;
      }
      const lines = readLines(disk, `${name}/${journalName}`);
      // A process died while it created the session.
      if (lines.length === 0) continue;
      const linkFiles = (hashes: readonly string[]): void => linkSaved(disk, name, target, hashes);
      const pointer = (each: string): void => point(each, name);
      write(
        `${name}/${journalName}`,
        newLines(lines, { disk, folder: name, runs, pointer, linkFiles }),
      );
    }
  }
  for (const name of namesIn(disk, spendFolder)) {
    const lines = readLines(disk, name);
    if (lines.length > 0) write(name, spendLines(lines));
  }
  for (const folder of namesIn(disk, uploadsFolder)) {
    for (const name of namesIn(disk, folder)) disk.link(name, `${target}/${name}`);
  }
}

/** Puts saved files where today's format has them. */
function linkSaved(disk: Disk, folder: string, target: string, hashes: readonly string[]): void {
  for (const hash of hashes) {
    const names = [filesName, 'artifacts'].map((each) => `${folder}/${each}/${fileName(hash)}`);
    const from = names.find((name) => disk.stat(name) !== undefined);
    if (from !== undefined) disk.link(from, `${target}/${folder}/${filesName}/${fileName(hash)}`);
  }
}

/** The lines of a file of what was spent. The first one has had nothing but the format since format 5. */
function* spendLines(lines: readonly OldLine[]): Generator<Buffer | string, void> {
  for (const [number, { bytes, content }] of lines.entries()) {
    if (content === undefined) yield bytes;
    else {
      const { waymark: _, ...line } = content;
      if (number === 0) yield toLine({ waymark: format });
      if (number === 0 && Object.keys(line).length > 0) yield '\n';
      if (Object.keys(line).length > 0) yield toLine(line as JsonObject);
    }
    yield '\n';
  }
  // The empty line at the end of a journal.
  yield '\n';
}
