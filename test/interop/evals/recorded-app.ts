import { type App, memoryStore, type Store, waymark } from 'waymark';
import type { SessionExport } from 'waymark/store';
import { scriptedModel } from 'waymark/testing';

/** An app and a session that it recorded. */
export async function recordedApp(): Promise<{ app: App; session: SessionExport }> {
  const model = scriptedModel({
    patterns: [[/hello (\w+)/, ([, name]) => `Hello, ${name}.`]],
    otherwise: 'Yes.',
  });
  const app = waymark({ store: memoryStore(), model });
  const agent = app.defineAgent({ name: 'greeter', system: 'Greet.' });
  const { sessionId } = await agent.run('hello Ada');
  await agent.run('is it you?', { sessionId });
  const session = await (app.store as Store).maintenance?.exportSession(
    { agent: 'greeter' },
    sessionId,
  );
  if (session === undefined) throw new Error('Nothing was exported.');
  return { app, session };
}
