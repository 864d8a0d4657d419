import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type AgentOptions, memoryStore, textOf, waymark } from 'waymark';
import { mcp } from 'waymark/mcp';
import { serve } from 'waymark/server';
import { type ScriptStep, scriptedModel } from 'waymark/testing';
import { directory, workspaceTools } from 'waymark/workspace';

let base = '';
const closing: (() => unknown)[] = [];
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'waymark-mcp-skills-'));
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  rmSync(base, { recursive: true });
});

function write(path: string, content: string | Buffer): void {
  mkdirSync(dirname(join(base, path)), { recursive: true });
  writeFileSync(join(base, path), content);
}

const load = (name: string): ScriptStep => ({
  toolCalls: [{ name: 'load_skill', input: { name } }],
});
const read = (name: string, path: string): ScriptStep => ({
  toolCalls: [{ name: 'read_skill_file', input: { name, path } }],
});

type Options = Partial<AgentOptions<undefined, undefined, undefined, undefined, undefined>>;

function open(script: readonly ScriptStep[], options: Options) {
  const model = scriptedModel(script);
  const errors: string[] = [];
  const app = waymark({
    model,
    store: memoryStore(),
    onError: (error) => errors.push((error as Error).message),
  });
  closing.push(() => app.close());
  const agent = app.defineAgent({ name: 'front', ...options });
  return { app, agent, model, errors };
}

function outputs(messages: readonly { readonly content: readonly object[] }[]): unknown[] {
  const parts = messages.flatMap(({ content }) => content) as {
    readonly toolResponse?: { readonly output: unknown };
  }[];
  return parts.flatMap(({ toolResponse }) => (toolResponse ? [toolResponse.output] : []));
}

describe('a served agent', () => {
  async function start(): Promise<{ readonly url: string }> {
    write('skills/refunds/SKILL.md', '---\nname: refunds\ndescription: Refunds.\n---\nPay back.');
    write('skills/refunds/references/über uns.md', 'Be kind.');
    write('skills/refunds/scripts/pay.sh', 'rm -rf /');
    write('skills/refunds/assets/logo.png', Buffer.from([0x89, 0xff]));
    const app = waymark({ model: scriptedModel([]), store: memoryStore() });
    app.defineAgent({ name: 'desk', skills: join(base, 'skills') });
    const server = await serve(app, { mcp: true, port: 0 });
    closing.push(() => server.close());
    return { url: server.url };
  }

  test('S836 its skills are skills of the agents that use its MCP server', async () => {
    const { url } = await start();
    const docs = mcp('docs', { url: `${url}/mcp` });
    const { agent, model, errors } = open(
      [load('docs/desk/refunds'), read('docs/desk/refunds', 'references/über uns.md'), 'Done.'],
      { skills: docs },
    );
    await agent.run('Go');
    expect(textOf(model.requests[0]?.messages[0])).toContain(
      '- docs/desk/refunds (from MCP server "docs"): "Refunds."',
    );
    const used = {
      skill: 'docs/desk/refunds',
      origin: 'MCP server "docs"',
      version: await localVersion(),
    };
    expect(outputs(model.requests[2]?.messages ?? [])).toEqual([
      {
        ...used,
        instructions: 'Pay back.',
        files: ['assets/logo.png', 'references/über uns.md'],
      },
      { ...used, path: 'references/über uns.md', text: 'Be kind.' },
    ]);
    expect(errors).toEqual([]);
  });

  test('S837 scripts of its skills are not handed out', async () => {
    const { url } = await start();
    const docs = mcp('docs', { url: `${url}/mcp` });
    const script = [read('docs/desk/refunds', 'scripts/pay.sh'), 'Done.'];
    const { agent, model } = open(script, { skills: docs });
    await agent.run('Go');
    const [output] = outputs(model.requests[1]?.messages ?? []);
    expect(output).toMatch(/script of MCP server "docs"\. Scripts of other systems are never run/);
  });

  test('S837 a shell asks a person once a skill of a server is loaded, also without `ask`', async () => {
    const { url } = await start();
    const docs = mcp('docs', { url: `${url}/mcp` });
    const shell = (command: string): ScriptStep => ({
      toolCalls: [{ name: 'shell', input: { command } }],
    });
    mkdirSync(join(base, 'project'));
    const { agent } = open(
      [
        shell('echo 1'),
        load('docs/desk/refunds'),
        shell('echo 2'),
        'Done.',
        shell('echo 3'),
        'Done.',
      ],
      {
        skills: docs,
        workspace: directory(join(base, 'project')),
        tools: [workspaceTools({ shell: true })],
      },
    );
    const asked = await agent.run('Go');
    expect(asked.interrupts.map(({ input }) => input)).toEqual([{ command: 'echo 2' }]);
    const done = await agent.resume(asked, (request) => request.approve());
    expect(done.text).toBe('Done.');
    const again = await agent.run('Again', { sessionId: asked.sessionId });
    expect(again.interrupts).toHaveLength(1);
  });

  /** The version of the same skill where it is loaded from its folder. */
  async function localVersion(): Promise<string> {
    const { agent, model } = open([load('refunds'), 'Done.'], { skills: join(base, 'skills') });
    await agent.run('Go');
    return (outputs(model.requests[1]?.messages ?? [])[0] as { readonly version: string }).version;
  }
});

describe('a server', () => {
  /** A server of 2025 in plain JSON-RPC, whose skills a test changes. */
  interface Raw {
    readonly url: string;
    readonly calls: string[];
    capabilities: object;
    skills: unknown[];
    readonly unlisted: Map<string, unknown>;
    readonly files: Map<string, string>;
    pageSize: number;
  }

  async function start(): Promise<Raw> {
    const raw: Raw = {
      url: '',
      calls: [],
      capabilities: { resources: {}, extensions: { 'io.modelcontextprotocol/skills': {} } },
      skills: [],
      unlisted: new Map(),
      files: new Map(),
      pageSize: 100,
    };
    const answer = (method: string, params: Record<string, unknown>): object => {
      raw.calls.push(method);
      if (method === 'initialize') {
        const serverInfo = { name: 'raw', version: '1' };
        const { capabilities } = raw;
        return { result: { protocolVersion: '2025-11-25', capabilities, serverInfo } };
      }
      if (method === 'skills/list') {
        const from = Number(params.cursor ?? 0);
        const next = from + raw.pageSize;
        return {
          result: {
            skills: raw.skills.slice(from, next),
            ...(next < raw.skills.length && { nextCursor: String(next) }),
            ttlMs: 300_000,
            cacheScope: 'public',
          },
        };
      }
      const uri = String(params.uri);
      if (method === 'skills/get') {
        const listed = raw.skills.find((each) => (each as { uri?: unknown }).uri === uri);
        const skill = listed ?? raw.unlisted.get(uri);
        if (skill !== undefined) return { result: { skill } };
      }
      const content = raw.files.get(uri);
      if (method === 'resources/read' && content !== undefined) {
        return { result: { contents: [{ uri, text: content }] } };
      }
      return { error: { code: -32602, message: `Unknown: ${method} ${uri}` } };
    };
    const server: Server = createServer(async (request, response) => {
      if (request.method !== 'POST') return response.writeHead(405).end();
      const { id, method, params = {} } = JSON.parse(await text(request));
      if (id === undefined) return response.writeHead(202).end();
      const body = method === 'server/discover' ? notFound : answer(method, params);
      response.writeHead(200, { 'content-type': 'application/json' });
      return response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closing.push(() => server.close());
    return Object.assign(raw, {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    });
  }
  const notFound = { error: { code: -32601, message: 'No method' } };

  /** Puts a skill on the server, and returns its entry. */
  function put(raw: Raw, path: string, body = 'Pay.', more: Record<string, string> = {}) {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const frontmatter = { name, description: `About ${name}.` };
    const source = `---\nname: ${name}\ndescription: About ${name}.\n---\n${body}`;
    const all = { 'SKILL.md': source, ...more };
    const resources = Object.entries(all).map(([file, content]) => {
      raw.files.set(`skill://${path}/${file}`, content);
      const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
      return { uri: `skill://${path}/${file}`, digest, size: Buffer.byteLength(content) };
    });
    return { uri: `skill://${path}/SKILL.md`, frontmatter, resources };
  }

  test('S836 names its skills by their path, reads each file when it is needed, and keeps the list', async () => {
    const raw = await start();
    raw.skills = [put(raw, 'acme/refunds'), put(raw, 'other/refunds'), put(raw, 'notes')];
    raw.pageSize = 2;
    const { agent, model } = open([load('raw/other/refunds'), 'Done.', 'Hi'], {
      skills: mcp('raw', { url: raw.url }),
    });
    const { sessionId } = await agent.run('Go');
    expect(textOf(model.requests[0]?.messages[0]).match(/^- \S+/gm)).toEqual([
      '- raw/acme/refunds',
      '- raw/notes',
      '- raw/other/refunds',
    ]);
    await agent.run('Hi', { sessionId });
    expect(raw.calls.filter((call) => call !== 'initialize')).toEqual([
      'skills/list',
      'skills/list',
      'resources/read',
    ]);
  });

  test('S836 without the extension is not asked', async () => {
    const raw = await start();
    raw.capabilities = { resources: {} };
    const { agent, model } = open(['Hi'], { skills: mcp('raw', { url: raw.url }) });
    await agent.run('Hi');
    expect(raw.calls).toEqual(['initialize']);
    expect(model.requests[0]?.tools).toEqual([]);
  });

  test('S836 content that does not fit its hash is read again with the hashes of now, or refused', async () => {
    const raw = await start();
    raw.skills = [put(raw, 'notes', 'One.')];
    const { app, agent, model } = open([load('raw/notes'), 'Done.', load('raw/notes'), 'Done.'], {
      skills: mcp('raw', { url: raw.url }),
    });
    await app.ready();
    raw.skills = [put(raw, 'notes', 'Two.')];
    await agent.run('Go');
    expect(outputs(model.requests[1]?.messages ?? [])[0]).toMatchObject({ instructions: 'Two.' });
    raw.files.set('skill://notes/SKILL.md', 'Something else');
    await agent.run('Go');
    expect(outputs(model.requests[3]?.messages ?? [])[0]).toMatch(/changes while it is read/);
  });

  test('S836 front matter must be what the list says', async () => {
    const raw = await start();
    const skill = put(raw, 'notes');
    raw.skills = [{ ...skill, frontmatter: { ...skill.frontmatter, license: 'MIT' } }];
    const { agent, model } = open([load('raw/notes'), 'Done.'], {
      skills: mcp('raw', { url: raw.url }),
    });
    await agent.run('Go');
    expect(outputs(model.requests[1]?.messages ?? [])[0]).toMatch(/not the one that MCP server/);
  });

  test('S836 a skill that it does not list is found by its path', async () => {
    const raw = await start();
    raw.skills = [put(raw, 'notes')];
    raw.unlisted.set('skill://hidden/SKILL.md', put(raw, 'hidden', 'Secret.'));
    const { agent, model } = open([load('raw/hidden'), 'Done.', load('raw/none'), 'Done.'], {
      skills: mcp('raw', { url: raw.url }),
    });
    await agent.run('Go');
    expect(outputs(model.requests[1]?.messages ?? [])[0]).toMatchObject({
      instructions: 'Secret.',
    });
    await agent.run('Go');
    expect(outputs(model.requests[3]?.messages ?? [])[0]).toMatch(/no skill "raw\/none"/);
  });

  test('S836 skills that cannot be used are left out and reported', async () => {
    const raw = await start();
    const good = put(raw, 'good');
    const [file] = good.resources;
    const digest = `sha256:${'0'.repeat(64)}`;
    const bad: [object, RegExp][] = [
      [{ ...put(raw, 'dynamic'), resources: 'dynamic' }, /"dynamic"/],
      [{ ...put(raw, 'a'), uri: 'skill://b/SKILL.md' }, /called "b"|name "a"/],
      [{ ...put(raw, 'c'), uri: 'file:///etc/passwd' }, /not that of a SKILL\.md/],
      [{ ...put(raw, 'd'), resources: [] }, /no SKILL\.md/],
      [
        { ...put(raw, 'e'), resources: [{ uri: 'skill://good/SKILL.md', digest, size: 1 }] },
        /not in its folder/,
      ],
      [
        { ...put(raw, 'f'), resources: [{ uri: 'skill://f/%2e%2e/x', digest, size: 1 }] },
        /not in its folder/,
      ],
      [
        { ...put(raw, 'g'), resources: [{ uri: 'skill://g/SKILL.md', digest, size: 1e7 }] },
        /262144/,
      ],
      [{ ...put(raw, 'h'), resources: [{ ...file, size: -1 }] }, /left out/],
      [{ uri: 7 }, /left out/],
    ];
    raw.skills = [...bad.map(([skill]) => skill), good];
    const { agent, model, errors } = open(['Hi'], { skills: mcp('raw', { url: raw.url }) });
    await agent.run('Hi');
    expect(textOf(model.requests[0]?.messages[0]).match(/^- \S+/gm)).toEqual(['- raw/good']);
    expect(errors).toHaveLength(bad.length);
    for (const [at, [, message]] of bad.entries()) expect(errors[at]).toMatch(message);
  });

  test('S836 has at most 256 skills for an agent', async () => {
    const raw = await start();
    raw.skills = Array.from({ length: 300 }, (_, at) => put(raw, `s${at}`));
    const { agent, model, errors } = open(['Hi'], { skills: mcp('raw', { url: raw.url }) });
    await agent.run('Hi');
    expect(textOf(model.requests[0]?.messages[0]).match(/^- \S+/gm)).toHaveLength(256);
    expect(errors).toEqual([expect.stringMatching(/more than 256 skills/)]);
  });

  test('S836 reports at most 256 skills that cannot be used', async () => {
    const raw = await start();
    raw.skills = Array.from({ length: 5000 }, (_, at) => ({ uri: at }));
    const { agent, errors } = open(['Hi'], { skills: mcp('raw', { url: raw.url }) });
    await agent.run('Hi');
    expect(errors).toHaveLength(257);
    expect(errors.at(-1)).toMatch(/more than 256 skills/);
  });

  test('S835 that is down is reported, and the turn continues without its skills', async () => {
    const { agent, errors } = open(['Hi'], {
      skills: mcp('raw', { url: 'http://127.0.0.1:9/', connectTimeout: 5_000 }),
    });
    expect((await agent.run('Hi')).text).toBe('Hi');
    expect(errors).toHaveLength(1);
  });
});
