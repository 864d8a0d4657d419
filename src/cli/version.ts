import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from './package-root.ts';

/** The version of this package. */
export function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'));
  const found =
    typeof manifest === 'object' && manifest && 'version' in manifest ? manifest.version : '';
  return String(found);
}
