import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import { isUsersFile } from '../package-root.ts';

const parameter = 'waymark-process';

/**
 * Makes imports from a file with a number in its address new ones for each number, so that the variables of its modules are those of a
 * new process. Packages are loaded once.
 */
export function renewModules(): (process: number) => string {
  // At runtime it may be missing, whatever its types say: Bun has no `registerHooks`, and renews only the file itself.
  const { registerHooks } = nodeModule as Partial<typeof nodeModule>;
  registerHooks?.({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const [number] = new RegExp(`[?&]${parameter}=\\d+`).exec(context.parentURL ?? '') ?? [];
      const isFile = resolved.url.startsWith('file:') && !resolved.url.includes('?');
      if (number === undefined || !isFile || context.conditions.includes('require'))
        return resolved;
      if (!isUsersFile(fileURLToPath(resolved.url))) return resolved;
      return { ...resolved, url: `${resolved.url}?${number.slice(1)}` };
    },
  });
  return (process) => `?${parameter}=${process}`;
}
