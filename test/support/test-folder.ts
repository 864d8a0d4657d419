import { rm } from 'node:fs/promises';

/** The environment variable with the path of a folder that all tests of one run share. */
export const testFolderVariable = 'WAYMARK_TEST_FOLDER';
/** The same for bundles, which must be inside the repository to find its packages. */
export const bundlesVariable = 'WAYMARK_TEST_BUNDLES';

/** Removes the folders after the run. */
export async function teardown(): Promise<void> {
  for (const variable of [testFolderVariable, bundlesVariable]) {
    const folder = process.env[variable];
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}
