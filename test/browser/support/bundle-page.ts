import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

/** One JavaScript bundle for a browser. */
export interface Bundle {
  readonly code: string;
  /** What the bundle still imports from outside, which a browser could not load. */
  readonly imports: readonly string[];
  /** The modules that went into it. */
  readonly modules: readonly string[];
}

/** Bundles an entry as a page would load it: one minified module, for production. With `split`, without what is loaded when it is needed. */
export async function bundleForBrowser(
  entry: URL,
  {
    external = [],
    split = false,
  }: { readonly external?: readonly string[]; readonly split?: boolean } = {},
): Promise<Bundle> {
  const built = await build({
    configFile: false,
    logLevel: 'error',
    root: fileURLToPath(new URL('../../..', import.meta.url)),
    // As for a reader of the docs: the package by its name.
    resolve: {
      alias: {
        'waymark/react': fileURLToPath(new URL('../../../src/react/index.ts', import.meta.url)),
        'waymark/client': fileURLToPath(new URL('../../../src/client/index.ts', import.meta.url)),
      },
    },
    define: { 'process.env.NODE_ENV': '"production"' },
    // A test runner's NODE_ENV would make it the development form, which production React does not have.
    oxc: { jsx: { runtime: 'automatic', development: false } },
    build: {
      write: false,
      minify: true,
      target: 'es2022',
      modulePreload: false,
      rolldownOptions: {
        input: fileURLToPath(entry),
        external: [...external],
        preserveEntrySignatures: 'strict',
        output: { format: 'es', codeSplitting: split },
      },
    },
  });
  const [result] = Array.isArray(built) ? built : [built];
  const output = result && 'output' in result ? result.output : undefined;
  if (!output) throw new Error(`Nothing was built from ${entry.href}.`);
  const [chunk, ...others] = output;
  const chunks = [chunk];
  for (const { imports } of chunks) {
    for (const other of others) {
      const isLoaded = other.type === 'chunk' && imports.includes(other.fileName);
      if (isLoaded && !chunks.includes(other)) chunks.push(other);
    }
  }
  return {
    code: chunks.map(({ code }) => code).join('\n'),
    imports: chunk.imports,
    modules: chunks.flatMap(({ moduleIds }) => moduleIds),
  };
}

/** A page on a loopback server: an empty body, a script, and what else is asked for. */
export interface PageServer extends AsyncDisposable {
  readonly url: string;
}

/** Serves a bundle as a page; `html` is what its root element holds before the script runs. */
export async function servePage(
  code: string,
  { html = '' }: { readonly html?: string } = {},
): Promise<PageServer> {
  const page = `<!doctype html><html lang="en"><head><title>Test</title><link rel="icon" href="data:,"></head>
<body><div id="root">${html}</div><script type="module" src="/page.js"></script></body></html>`;
  const server = createServer(({ url }, response) => {
    const isScript = url === '/page.js';
    response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' });
    response.end(isScript ? code : page);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
