import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(new URL('../package.json', import.meta.url));

/** A Worker in workerd. */
interface Started {
  readonly url: string;
  /** Lets its cron trigger fire, and waits for it. */
  scheduled(): Promise<void>;
  dispose(): Promise<void>;
}

// Its types are those of another version of Node.
const { Miniflare, Response: WorkerResponse } = require('miniflare') as {
  readonly Response: new (text: string) => object;
  readonly Miniflare: new (
    options: object,
  ) => {
    readonly ready: Promise<URL>;
    getWorker(): Promise<{ scheduled(options: object): Promise<unknown> }>;
    dispose(): Promise<void>;
  };
};
// The bundler of wrangler: that of the project cannot make a script without modules.
const { build } = require('esbuild') as {
  build(options: object): Promise<{ readonly outputFiles: readonly { readonly text: string }[] }>;
};

/** What an app need not install, and what the platform has. */
export const optional = ['dotprompt', '@opentelemetry/api', 'ai', 'node:*', 'cloudflare:*'];

/** Bundles a module of this folder with the sources of the project. */
export async function bundleWorker(name: string, options: object = {}): Promise<string> {
  const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [file(name)],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2024',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'import'],
    // The suites have prompts, for which they need dotprompt.
    external: optional.filter((name) => name !== 'dotprompt'),
    alias: { vitest: file('./vitest.ts') },
    // Not the paths of the project.
    tsconfigRaw: {},
    logLevel: 'error',
    ...options,
  });
  return outputFiles[0]?.text ?? '';
}

/** What a service of the test answers. */
export const respond = (text: string): object => new WorkerResponse(text);

/** Starts a Worker from its script. */
export async function startWorker(script: string, options: object): Promise<Started> {
  const worker = new Miniflare({
    modules: [{ type: 'ESModule', path: 'worker.mjs', contents: script }],
    compatibilityDate: '2026-04-01',
    compatibilityFlags: ['nodejs_compat'],
    ...options,
  });
  const url = String(await worker.ready).replace(/\/$/, '');
  return {
    url,
    async scheduled() {
      await (await worker.getWorker()).scheduled({ cron: '* * * * *' });
    },
    dispose: () => worker.dispose(),
  };
}
