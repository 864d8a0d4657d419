import { expect, test } from 'vitest';
import { memoryStore, type Output, waymark } from 'waymark';
import { defineNewsroom } from '../../examples/newsroom.ts';
import { defineResearcher } from '../../examples/researcher.ts';
import { defineWriter } from '../../examples/writer.ts';

function open() {
  const app = waymark({ store: memoryStore() });
  const writer = defineWriter(app);
  const researcher = defineResearcher(app, { pauseMs: 5 });
  return { app, researcher, newsroom: defineNewsroom(app, { writer, researcher }) };
}
const textOf = ({ message }: Output): string =>
  (message?.content ?? []).map((part) => ('text' in part ? part.text : '')).join('');

test('the writer works in the foreground: its files and chunks come through under its name', async () => {
  const { newsroom } = open();
  const agents = new Set<string>();
  const { stream, output } = newsroom.streamText('Write about lighthouses');
  for await (const { agent } of stream) if (agent !== undefined) agents.add(agent);
  expect([...agents]).toEqual(['writer']);
  const { artifacts } = await output;
  expect(artifacts?.map(({ name }) => name)).toEqual(['writer/outline.md', 'writer/draft.md']);
});

test('the researcher works in the background: it is started, and asked about later', async () => {
  const { newsroom, researcher } = open();
  const started = (await newsroom.runText('Research tides')) as Output;
  const [runId = ''] = /[0-9a-f-]{36}/.exec(textOf(started)) ?? [];
  await researcher.wait(runId);
  const place = { sessionId: started.sessionId };
  const asked = (await newsroom.runText(`How is ${runId} doing?`, place)) as Output;
  expect(textOf(asked)).toContain('**succeeded**');
  expect(textOf(asked)).toContain('maps');
});
