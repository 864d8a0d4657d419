import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import serverlessChromium from '@sparticuz/chromium';

const names = ['chromium', 'chromium-browser', 'google-chrome'];
const macPath = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';

/** The package brings a Chromium for Linux on x64 only. */
export const bringsChromium: boolean = process.platform === 'linux' && process.arch === 'x64';

/** The installed Chromium: `CHROMIUM_PATH`, or one on the PATH; `undefined` when there is none. */
export function installedChromium(): string | undefined {
  if (process.env.CHROMIUM_PATH !== undefined) return process.env.CHROMIUM_PATH;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const paths = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  return [...paths, macPath].find((path) => existsSync(path));
}

/** The Chromium that tests use. */
export async function findChromium(): Promise<string> {
  if (process.env.CHROMIUM_PATH === undefined && bringsChromium) {
    return await serverlessChromium.executablePath();
  }
  const path = installedChromium();
  if (path !== undefined) return path;
  const platform = `${process.platform} on ${process.arch}`;
  throw new Error(`There is no Chromium for ${platform}. Install one, or set CHROMIUM_PATH.`);
}
