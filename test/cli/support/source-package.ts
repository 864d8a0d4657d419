/**
 * Loaded before anything else (`node --import`): `waymark` and its subpaths are the sources of this repository, so that no
 * build has to be there.
 */
import { registerHooks } from 'node:module';

const src = new URL('../../../src/', import.meta.url);
const rooms: Readonly<Record<string, string>> = {
  sqlite: 'store',
  file: 'store',
  postgres: 'store',
  'pg-boss': 'engine',
};

registerHooks({
  resolve(specifier, context, next) {
    const [name, part, rest] = specifier.split('/');
    if (name !== 'waymark') return next(specifier, context);
    if (part === undefined) return next(new URL('index.ts', src).href, context);
    if (rest === 'contract') return next(new URL(`${part}/contract.ts`, src).href, context);
    const folder = rooms[part] === undefined ? part : `${rooms[part]}/${part}`;
    return next(new URL(`${folder}/index.ts`, src).href, context);
  },
});
