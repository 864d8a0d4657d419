import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../core/time.ts';

/** Tells Genkit's development tools where this server is; the returned function takes the note away again. */
export async function writeRuntimeFile(
  project: string,
  port: number,
  clock: Clock,
): Promise<() => Promise<void>> {
  const folder = join(project, '.genkit', 'runtimes');
  const id = `${process.pid}-${port}`;
  const path = join(folder, `${id}-${clock.now()}.json`);
  const note = {
    id,
    pid: process.pid,
    name: 'waymark',
    reflectionServerUrl: `http://localhost:${port}`,
    timestamp: new Date(clock.now()).toISOString(),
    genkitVersion: 'nodejs/1.42.0',
    reflectionApiSpecVersion: 1,
  };
  await mkdir(folder, { recursive: true });
  await writeFile(path, `${JSON.stringify(note, null, 2)}\n`);
  return () => rm(path, { force: true });
}
