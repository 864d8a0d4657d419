import { isJsonObject, parseJson } from '../../core/json.ts';
import type { Disk } from './disk.ts';
import { dataLoss } from './disk-error.ts';
import { checkFormat, format } from './format.ts';
import { recover } from './intent.ts';
import { formatFile, ignored, ignoreFile } from './layout.ts';
import type { Lock } from './lock.ts';
import type { Mirror } from './mirror.ts';

/** Makes a directory a store, or finds out that it is one that this version can use. */
export async function openDirectory(mirror: Mirror, lock: Lock): Promise<void> {
  const { disk } = mirror;
  if (!checkDirectory(disk)) disk.makeFolder('.');
  await lock.hold(
    (hold) => {
      disk.era++;
      if (!checkDirectory(disk)) create(disk);
      if (hold === 'not') return;
      recover(mirror);
      mirror.removeResting();
      if (mirror.events.runIds().length === 0) return;
      mirror.reachRuns();
      mirror.events.dropForgotten();
    },
    { orWithout: true },
  );
}

function create(disk: Disk): void {
  disk.replace(ignoreFile, `${ignored.join('\n')}\n`);
  disk.replace(formatFile, `${JSON.stringify({ waymark: format, store: 'file' })}\n`);
}

/** Whether the directory is a store already. */
function checkDirectory(disk: Disk): boolean {
  const text = disk.readText(formatFile);
  if (text === undefined) return false;
  const content = parse(text);
  if (!isJsonObject(content)) throw dataLoss(formatFile, 'it is no object');
  checkFormat(content, formatFile);
  return true;
}

function parse(text: string): ReturnType<typeof parseJson> {
  try {
    return parseJson(text, formatFile);
  } catch (cause) {
    throw dataLoss(formatFile, 'it is not JSON', cause);
  }
}
