import { rm } from 'node:fs/promises';

/** The environment variable with the path of a folder that all tests of one run share. */
export const testFolderVariable = 'WAYMARK_TEST_FOLDER';

/** Removes the folder after the run. */
export async function teardown(): Promise<void> {
  const folder = process.env[testFolderVariable];
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
}
