import { bringsChromium, findChromium, installedChromium } from './find-chromium.ts';

/** Unpacks Chromium before the first worker needs it: two at a time would meet a file that is only half there. */
export async function setup(): Promise<void> {
  if (bringsChromium) await findChromium();
  else if (installedChromium() === undefined) {
    console.warn(
      'Tests in a browser are left out: there is no Chromium. Install one, or set CHROMIUM_PATH.',
    );
  }
}
