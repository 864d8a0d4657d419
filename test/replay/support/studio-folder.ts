import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that serves as a built Studio where only its calls are tested. */
export async function openStudioFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'waymark-studio-folder-'));
  await writeFile(join(path, 'index.html'), '<!doctype html><title>Studio</title>');
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
