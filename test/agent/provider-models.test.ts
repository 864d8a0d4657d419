/** Models that definitions name, such as `openai/gpt-5`. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type App, type AppOptions, fallback, memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

const apps: App[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

function open(options: AppOptions = {}): App {
  const app = waymark({ store: memoryStore(), onError: () => {}, ...options });
  apps.push(app);
  return app;
}

const missing =
  'Model "groq/llama" needs the package @ai-sdk/groq, which cannot be loaded. Install it: npm install @ai-sdk/groq.';

describe('the name of a provider and a model', () => {
  test.each([
    ['OPENAI_API_KEY', 'openai/gpt-5'],
    ['ANTHROPIC_API_KEY', 'anthropic/claude-sonnet-4-5'],
    ['GOOGLE_GENERATIVE_AI_API_KEY', 'google/gemini-2.5-flash'],
  ])('without %s, ready() loads %s and a turn is refused', async (key, model) => {
    vi.stubEnv(key, undefined);
    const app = open({ model });
    const agent = app.defineAgent({ name: 'a' });
    await app.ready();
    await expect(agent.run('hi')).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining(`the ${key} environment variable`),
    });
    expect((await agent.listSessions()).items).toEqual([]);
  });

  test('S713 is called with its id', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'a key');
    const asked: unknown[] = [];
    vi.stubGlobal('fetch', async (_: unknown, { body }: { body: string }) => {
      asked.push(JSON.parse(body).model);
      return Response.json({ error: { message: 'no' } }, { status: 400 });
    });
    // Without ready(): the first call loads it.
    const agent = open().defineAgent({ name: 'a', model: 'openai/gpt-test' });
    await expect(agent.run('hi')).rejects.toMatchObject({ name: 'TurnError' });
    expect(asked).toEqual(['gpt-test']);
  });

  test('S713 of a package that is not installed is refused by ready(), and by a turn', async () => {
    for (const define of [
      (app: App) => app.defineAgent({ name: 'a', model: 'groq/llama' }),
      (app: App) =>
        app.defineAgent({
          name: 'a',
          prompt: app.definePrompt({ name: 'p', model: 'groq/llama' }),
        }),
      (app: App) =>
        app.defineAgent({ name: 'a', model: scriptedModel([]), use: [fallback(['groq/llama'])] }),
    ]) {
      const app = open();
      define(app);
      await expect(app.ready()).rejects.toMatchObject({
        status: 'FAILED_PRECONDITION',
        message: expect.stringContaining(missing),
      });
    }
    const agent = open({ model: 'groq/llama' }).defineAgent({ name: 'a' });
    await expect(agent.run('hi')).rejects.toThrow(missing);
  });

  test('S713 that is defined means the defined model', async () => {
    const app = open({ model: 'groq/llama' });
    app.defineModel({ name: 'groq/llama' }, scriptedModel(['Mine.']).run);
    const agent = app.defineAgent({ name: 'a' });
    await app.ready();
    expect((await agent.run('hi')).text).toBe('Mine.');
  });

  test('S713 in a call loads nothing', async () => {
    const app = open({ model: scriptedModel([]) });
    const agent = app.defineAgent({ name: 'a' });
    for (const call of [
      () => agent.run('hi', { model: 'openai/gpt-5' }),
      () => app.generate({ prompt: 'hi', model: 'openai/gpt-5' }),
    ]) {
      await expect(call()).rejects.toThrow(
        /No model "openai\/gpt-5" is defined.*name it in the definition of the app, an agent or a prompt/,
      );
    }
  });
});
