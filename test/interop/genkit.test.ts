import { remoteAgent } from 'genkit/beta/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { post, startServer, userInput } from '../server/kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let url: string;
// Genkit's own client, as npm gives it.
let agent: ReturnType<typeof remoteAgent>;

beforeAll(async () => {
  server = await startServer({ keepAlive: 20 });
  url = `${server.url}/genkit/chat`;
  agent = remoteAgent({ url });
});
afterAll(() => server.close());

describe('Genkit’s remoteAgent', () => {
  test('takes turns in one session', async () => {
    const chat = agent.chat();
    const first = await chat.send('hello');
    expect(first.text).toBe('You said 1 things.');
    expect(first.finishReason).toBe('stop');
    expect((await chat.send('again')).text).toBe('You said 2 things.');
    expect(chat.sessionId).toBe(first.sessionId);
    const loaded = await agent.loadChat({ sessionId: chat.sessionId ?? '' });
    expect(loaded.messages).toHaveLength(4);
    expect(loaded.sessionId).toBe(first.sessionId);
    expect((await loaded.send('once more')).text).toBe('You said 3 things.');
  });

  test('streams, with characters of several bytes, over signs of life', async () => {
    const { stream, response } = agent.chat().sendStream('umlaut');
    let text = '';
    for await (const chunk of stream) text = chunk.accumulatedText;
    expect(text).toBe('grüße 🌍 — 日本語');
    expect((await response).text).toBe('grüße 🌍 — 日本語');
    const slow = await agent.chat().send('count 5 30');
    expect(slow.text).toBe('0 1 2 3 4 ');
  });

  test('sees patches of the custom state, and artifacts', async () => {
    const chat = agent.chat();
    const { stream, response } = chat.sendStream('remember rain');
    const states: unknown[] = [];
    const artifacts: unknown[] = [];
    for await (const chunk of stream) {
      if (chunk.custom !== undefined) states.push(chunk.custom);
      if (chunk.artifact) artifacts.push(chunk.artifact);
    }
    expect(states.at(-1)).toEqual({ topics: ['rain'] });
    await response;
    await chat.send('remember sun');
    expect(chat.state).toEqual({ topics: ['rain', 'sun'] });
    expect((await response).artifacts).toMatchObject([{ name: 'topics.md' }]);
  });

  test('answers an interrupt by running the tool again', async () => {
    const chat = agent.chat();
    const asked = await chat.send('transfer 7');
    expect(asked.finishReason).toBe('interrupted');
    const [interrupt] = asked.interrupts;
    expect(interrupt?.input).toEqual({ sum: 7 });
    const done = await chat.resume({ restart: [interrupt?.restart() as never] });
    expect(done.finishReason).toBe('stop');
    expect(done.text).toContain('"moved":7');
  });

  test('answers an interrupt with a result', async () => {
    const chat = agent.chat();
    const asked = await chat.send('ask');
    const done = await chat.resume({ respond: [asked.interrupts[0]?.respond('blue') as never] });
    expect(done.text).toBe('blue');
  });

  test('detaches, polls and reads what came of it', async () => {
    const chat = agent.chat();
    const task = await chat.detach('count 10 10');
    const seen: (string | undefined)[] = [];
    for await (const { status } of task.poll({ intervalMs: 20 })) seen.push(status);
    expect(seen[0]).toBe('pending');
    expect(seen.at(-1)).toBe('completed');
    const snapshot = await agent.getSnapshot(task.snapshotId);
    expect(snapshot?.state?.messages?.at(-1)?.content[0]?.text).toMatch(/9 $/);
  });

  test('aborts a detached run', async () => {
    const task = await agent.chat().detach('hang');
    expect(await task.abort()).toBe('aborted');
    expect((await task.wait({ intervalMs: 10 })).status).toBe('aborted');
    expect(await agent.abort('0193b7a0-0000-7000-8000-000000000000')).toBeUndefined();
  });

  test('learns the status of what is refused and of what failed', async () => {
    await expect(
      agent.chat({ snapshotId: '0193b7a0-0000-7000-8000-000000000000' }).send('x'),
    ).rejects.toMatchObject({
      name: 'AgentError',
      status: 'NOT_FOUND',
    });
    await expect(agent.chat().send({})).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    await expect(agent.chat().send('fail')).rejects.toMatchObject({
      status: 'INTERNAL',
      message: expect.not.stringContaining('secret'),
    });
    await expect(
      remoteAgent({ url: `${server.url}/genkit/nobody` })
        .chat()
        .send('x'),
    ).rejects.toMatchObject({
      status: 'NOT_FOUND',
    });
  });

  test('holds the state itself where the agent has no store', async () => {
    const chat = remoteAgent({ url: `${server.url}/genkit/held` }).chat();
    await chat.send('one');
    expect((await chat.send('two')).text).toBe('You said 2 things.');
    expect(chat.messages).toHaveLength(4);
    expect(chat.snapshotId).toBeUndefined();
  });
});

describe('the wire', () => {
  test('every line of a stream is a data line or empty, and all of it ASCII', async () => {
    const response = await post(`${url}?stream=true`, { data: userInput('umlaut'), init: null });
    const text = await response.text();
    for (const line of text.split('\n')) expect(line).toMatch(/^(data: [\x20-\x7e]+)?$/);
    expect(text).toMatch(/data: \{"result":[^\n]*\}\n\n$/);
    expect(text).not.toContain('turnStart');
  });

  test('JSON answers are wrapped, errors are bare and have their status', async () => {
    const answer = await (await post(url, { data: userInput('hello') })).json();
    expect(answer.result.message.content[0].text).toBe('You said 1 things.');
    const { snapshotId, sessionId } = answer.result;
    const by = async (data: object): Promise<Response> => post(`${url}/getSnapshot`, { data });
    expect(await (await by({ snapshotId })).json()).toMatchObject({
      result: { status: 'completed' },
    });
    expect(await (await by({ sessionId })).json()).toMatchObject({ result: { snapshotId } });
    const both = await by({ snapshotId, sessionId });
    expect(await both.json()).toMatchObject({ result: { snapshotId } });
    expect((await by({ snapshotId, sessionId: 'another' })).status).toBe(404);
    const refused = await by({});
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ status: 'INVALID_ARGUMENT' });
    expect((await by({ sessionId: 'nobody' })).status).toBe(404);
    const unknown = '0193b7a0-0000-7000-8000-000000000000';
    expect(await (await post(`${url}/abort`, { data: { snapshotId: unknown } })).json()).toEqual({
      result: { snapshotId: unknown },
    });
  });

  test('a server that ends says so in a last frame', async () => {
    const ending = await startServer({ grace: 20 });
    const response = await post(`${ending.url}/genkit/chat?stream=true`, {
      data: userInput('hang'),
    });
    const text = response.text();
    await ending.close();
    expect(await text).toMatch(/data: \{"error":\{"status":"UNAVAILABLE"[^\n]*\}\n\n$/);
  });
});
