import { type App, waymark } from '../../../src/index.ts';
import { sqliteStore } from '../../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../../src/testing/index.ts';

/** An app over a SQLite database whose model takes some time. */
export function openSessions(path: string, delay: number): App {
  const app = waymark({
    store: sqliteStore(path),
    model: scriptedModel({
      patterns: [[/.*/, ([text]) => ({ text: `re ${text}`, delay })]],
      otherwise: '',
    }),
    onError: () => {},
  });
  app.defineAgent({ name: 'chat' });
  return app;
}
