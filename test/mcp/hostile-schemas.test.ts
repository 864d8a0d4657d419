import { afterEach, expect, test } from 'vitest';
import { type App, waymark } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { hostileSchemas, someHostileSchemas } from '../support/hostile-schemas.ts';
import { rawServer } from './support/raw.ts';

const apps: App[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

/** An agent that calls the tool that it is told, and what its model is asked. */
function open(behaviour: string) {
  const errors: string[] = [];
  const model = scriptedModel({
    patterns: [
      [
        /^call (\S+) (.*)/s,
        ([, name = '', input = '{}']) => ({ toolCalls: [{ name, input: JSON.parse(input) }] }),
      ],
    ],
    otherwise: 'Nothing.',
  });
  const app = waymark({ model, onError: (error) => errors.push(String(error)) });
  apps.push(app);
  const agent = app.defineAgent({ name: 'chat', tools: [rawServer('raw', behaviour)] });
  const outputOf = async (name: string, input: unknown = {}): Promise<unknown> => {
    await agent.run(`call ${name} ${JSON.stringify(input)}`);
    const part = model.requests.at(-1)?.messages.at(-1)?.content[0];
    return part && 'toolResponse' in part ? part.toolResponse?.output : undefined;
  };
  return { agent, model, errors, outputOf };
}

test('S660 the schemas of a server for inputs and results are checked in a limited number of steps', async () => {
  const { outputOf, model, errors } = open('hostile');
  for (const hostile of someHostileSchemas) {
    const { name, value } = hostile;
    const at = hostileSchemas.indexOf(hostile);
    expect(await outputOf(`raw_input-${at}`, value), name).toEqual(expect.anything());
    expect(await outputOf(`raw_output-${at}`), name).toEqual(expect.anything());
  }
  expect(await outputOf('raw_output-17')).toMatch(/takes too many steps/);
  // Two of them are nested too deeply or are not schemas: they are left out, and the app's owner hears why.
  const left = errors.filter((error) => error.includes('is left out'));
  expect(left.join()).toMatch(/nested more than 128 levels deep/);
  expect(model.requests[0]?.tools.length).toBe(2 * hostileSchemas.length - left.length);
});

test('S663 tools after the first 1000 of a server are left out, reported, and not asked for', async () => {
  const { outputOf, model, errors } = open('many');
  expect(await outputOf('raw_t7')).toBe('1 pages');
  expect(model.requests[0]?.tools).toHaveLength(1_000);
  expect(errors).toEqual([
    expect.stringMatching(
      /MCP server "raw" lists more tools than 1000, or .*"t1000" and those after it are left out/,
    ),
  ]);
});

test('S663 tools beyond two million characters of a server are left out and reported', async () => {
  const { outputOf, model, errors } = open('long');
  expect(await outputOf('raw_t7')).toBe('1 pages');
  expect(model.requests[0]?.tools).toHaveLength(10);
  expect(errors).toEqual([expect.stringMatching(/"t10" and those after it are left out/)]);
});

test('S663 a tool that is nested too deeply to be measured is left out and reported', async () => {
  const { outputOf, errors } = open('deep');
  expect(await outputOf('raw_echo', { text: 'hi' })).toBe('echo hi');
  expect(errors).toEqual([expect.stringMatching(/"deep" and those after it are left out/)]);
});

test('S660 the answer to a question of a server is checked in a limited number of steps', async () => {
  const { agent } = open('twice');
  const asked = await agent.run('call raw_ask {}');
  const resumed = { action: 'accept', content: { value: 'x' } };
  const answered = agent.resume(
    asked,
    asked.interrupts.map((each) => each.approve({ resumed })),
  );
  await expect(answered).rejects.toThrow(/takes too many steps/);
});
