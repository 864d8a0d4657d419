import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { build } from 'vite';
import type { App } from 'waymark';
import { type RunningServer, serve } from 'waymark/server';
import { launchChromium, type TestPage } from '../../browser/support/chromium.ts';
import { createStudioApp } from '../app.ts';

/** The studio as people have it: built, served with agents by a real server, in a real browser. */
export interface Studio extends AsyncDisposable {
  readonly app: App;
  readonly url: string;
  readonly browser: Browser;
  /** Where the studio was built to. */
  readonly folder: string;
  /** A page of its own at a place in the studio. */
  open(place?: string, options?: BrowserContextOptions): Promise<TestPage>;
  /** Takes the server away; the app stays. */
  stopServer(): Promise<void>;
  /** Brings the server back at the same address. */
  startServer(): Promise<void>;
}

export async function openStudio(app: App = createStudioApp()): Promise<Studio> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-studio-'));
  const [browser] = await Promise.all([launchChromium(), buildStudio(folder)]);
  const start = (port: number): Promise<RunningServer> =>
    serve(app, { port, studio: folder, log: () => {}, grace: 50 });
  let server = await start(0);
  const { url, port } = server;
  return {
    app,
    url,
    browser: browser.browser,
    folder,
    async open(place = '', options = {}) {
      const opened = await browser.newPage({
        viewport: { width: 1440, height: 900 },
        reducedMotion: 'reduce',
        ...options,
      });
      await opened.page.goto(`${url}/studio/#/${place}`);
      return opened;
    },
    stopServer: () => server.close(),
    async startServer() {
      server = await start(port);
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      await server.close();
      await app.close({ deadlineMs: 50 });
      await rm(folder, { recursive: true });
    },
  };
}

export async function buildStudio(outDir: string): Promise<void> {
  const root = fileURLToPath(new URL('../../../studio/', import.meta.url));
  await build({
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'error',
    mode: 'production',
    // A test runner's NODE_ENV would make it React's development form.
    define: { 'process.env.NODE_ENV': '"production"' },
    oxc: { jsx: { runtime: 'automatic', development: false } },
    build: { outDir },
  });
}
