/**
 * Loaded before anything else (`node --import`): `waymark` and its subpaths are the package that the tests have built, wherever
 * the importing file is.
 */
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const folder = process.env.WAYMARK_TEST_PACKAGE ?? '';

registerHooks({
  resolve(specifier, context, next) {
    const [name, ...path] = specifier.split('/');
    if (name !== 'waymark') return next(specifier, context);
    const file = `${path.join('-') || 'index'}.mjs`;
    return next(pathToFileURL(join(folder, file)).href, context);
  },
});
