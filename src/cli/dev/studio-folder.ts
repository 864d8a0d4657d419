import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../package-root.ts';

/** The folder of the built Studio; `undefined` when it was not built. */
export function studioFolder(): string | undefined {
  const folder = join(packageRoot(), 'dist', 'studio');
  return existsSync(join(folder, 'index.html')) ? folder : undefined;
}
