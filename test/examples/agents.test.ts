import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { chooseModel } from '../../examples/choose-model.ts';
import { command, tempFolder } from '../cli/support/command.ts';

const folder = tempFolder();
afterAll(() => folder.remove());

describe('the model of the examples', () => {
  test('is a script when there is neither a key nor a local server', async () => {
    const { model, note } = await chooseModel({}, []);
    expect(model).toBeUndefined();
    expect(note).toContain('play a script');
  });

  test.each([
    ['OPENAI_API_KEY', 'openai gpt-5'],
    ['ANTHROPIC_API_KEY', 'anthropic claude-sonnet-4-5'],
    ['GOOGLE_GENERATIVE_AI_API_KEY', 'google gemini-2.5-flash'],
  ])('is the provider’s when %s is set', async (key, said) => {
    const { model, note } = await chooseModel({ [key]: 'not a real one' }, []);
    expect(model).toBeDefined();
    expect(note).toBe(`${said}, because ${key} is set`);
  });

  test('is the first one of a local server that speaks OpenAI’s wire', async () => {
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ data: [{ id: 'small-llama' }] }));
    }).listen(0, '127.0.0.1');
    await new Promise((listening) => server.once('listening', listening));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const url = `http://127.0.0.1:${port}/v1`;
    const gone = { name: 'Nobody', url: 'http://127.0.0.1:9/v1' };
    const servers = [gone, { name: 'Test', url }];
    const options = { timeout: 60_000 };
    const { model, note } = await chooseModel({}, servers, options);
    expect(model).toMatchObject({ modelId: 'small-llama' });
    expect(note).toBe(`small-llama on Test, found at ${url}`);
    const named = await chooseModel({ WAYMARK_MODEL: 'big-llama' }, servers, options);
    expect(named.note).toContain('big-llama');
    server.close();
  });
});

test('all examples load as one file, and answer', async () => {
  const file = resolve(import.meta.dirname, '../../examples/agents.ts');
  const { code, stdout } = await command(folder.path, [
    'chat',
    'newsroom',
    'Hello',
    '--file',
    file,
  ]);
  expect(code).toBe(0);
  expect(stdout).toContain('I edit.');
});
