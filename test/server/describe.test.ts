import { expect, test } from 'vitest';
import { z } from 'zod';
import { client } from '../../src/client/index.ts';
import { waymark } from '../../src/index.ts';
import { serve } from '../../src/server/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

test('an agent tells its model, its tools and their schemas to whoever asks for it alone', async () => {
  const app = waymark({ model: scriptedModel(['hi'], { name: 'script' }) });
  const weather = app.defineTool(
    { name: 'weather', description: 'Weather', input: z.object({ city: z.string() }) },
    () => 'clear',
  );
  const ask = app.defineInterrupt({
    name: 'ask',
    description: 'Asks a person',
    output: z.object({ yes: z.boolean() }),
  });
  app.defineAgent({ name: 'chat', tools: [weather, ask], system: '{{@state.missing.deeply}}' });
  app.defineCustomAgent({ name: 'own' }, async (session) => {
    await session.run(async () => {});
  });
  const server = await serve(app, { port: 0, log: () => {} });
  try {
    const info = await client({ url: server.url, agent: 'chat' }).describe();
    expect(info.model).toBe('script');
    expect(info.tools).toMatchObject([
      {
        name: 'weather',
        description: 'Weather',
        inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
      },
      {
        name: 'ask',
        interrupt: true,
        outputSchema: { type: 'object', properties: { yes: { type: 'boolean' } } },
      },
    ]);
    expect(info.tools?.[0]).not.toHaveProperty('interrupt');
    const own = await client({ url: server.url, agent: 'own' }).describe();
    expect(own).not.toHaveProperty('tools');
  } finally {
    await server.close();
    await app.close();
  }
});
