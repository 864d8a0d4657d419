import type { Browser, BrowserContextOptions } from 'playwright-core';
import { inject } from 'vitest';
import type { App } from 'waymark';
import { type RunningServer, type ServeOptions, serve } from 'waymark/server';
import { launchChromium, type TestPage } from '../../browser/support/chromium.ts';
import { createStudioApp } from '../app.ts';

/** The studio as people have it: built, served with agents by a real server, in a real browser. */
export interface Studio extends AsyncDisposable {
  readonly app: App;
  readonly url: string;
  readonly browser: Browser;
  /** Where the studio was built to. */
  readonly folder: string;
  /** Opens a new page that is still empty. */
  openBlank(options?: BrowserContextOptions): Promise<TestPage>;
  /** Opens a new page at a path of the Studio. */
  open(place?: string, options?: BrowserContextOptions): Promise<TestPage>;
  /** Takes the server away; the app stays. */
  stopServer(): Promise<void>;
  /** Brings the server back at the same address. */
  startServer(): Promise<void>;
}

export async function openStudio(
  app: App = createStudioApp(),
  options: Pick<ServeOptions, 'studioData'> = {},
): Promise<Studio> {
  const folder = inject('studio');
  const browser = await launchChromium();
  const start = (port: number): Promise<RunningServer> =>
    serve(app, { port, studio: folder, log: () => {}, grace: 50, ...options });
  let server = await start(0);
  const { url, port } = server;
  const openBlank = (options: BrowserContextOptions = {}): Promise<TestPage> =>
    browser.newPage({
      viewport: { width: 1440, height: 900 },
      reducedMotion: 'reduce',
      ...options,
    });
  return {
    app,
    url,
    browser: browser.browser,
    folder,
    openBlank,
    async open(place = '', options = {}) {
      const opened = await openBlank(options);
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
      await app.close({ grace: 50 });
    },
  };
}
