import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../package-root.ts';

/** The folder of the built studio; `undefined` when this package was built without it. */
export function studioFolder(): string | undefined {
  const folder = join(packageRoot(), 'dist', 'studio');
  return existsSync(join(folder, 'index.html')) ? folder : undefined;
}
