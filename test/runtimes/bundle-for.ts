import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

// The bundler of wrangler: that of the project cannot make a script without modules.
const { build } = createRequire(import.meta.url)('esbuild') as {
  build(options: object): Promise<{ readonly outputFiles: readonly { readonly text: string }[] }>;
};

/** Bundles an app for a runtime without Node's servers; `contents` is a module that finds the packages of this folder. */
export async function bundleFor(
  condition: 'workerd' | 'edge-light',
  { contents, minify = false }: { readonly contents: string; readonly minify?: boolean },
): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL('.', import.meta.url)), loader: 'ts' },
    bundle: true,
    write: false,
    minify,
    format: condition === 'workerd' ? 'esm' : 'iife',
    target: 'es2024',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: [condition, 'import'],
    // Optional packages, of which an app installs those that it uses.
    external: ['dotprompt', '@opentelemetry/api', 'ai', 'node:*', 'cloudflare:*'],
    // Not the paths of the project, which lead to its sources.
    tsconfigRaw: {},
    logLevel: 'error',
  });
  return outputFiles[0]?.text ?? '';
}
