import { mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type Agent,
  type AgentOptions,
  memoryStore,
  type SkillSource,
  textOf,
  waymark,
} from 'waymark';
import { replay } from 'waymark/replay';
import { type ScriptStep, scriptedModel } from 'waymark/testing';
import { directory, workspaceTools } from 'waymark/workspace';

let base = '';
let skills = '';
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'waymark-skills-'));
  skills = join(base, 'skills');
  add('release-notes', 'Writes release notes. Use it for a new version.', 'List the changes.\n');
});
afterEach(() => rmSync(base, { recursive: true }));

function write(path: string, content: string): void {
  mkdirSync(dirname(join(skills, path)), { recursive: true });
  writeFileSync(join(skills, path), content);
}

function add(name: string, description: string, body: string): void {
  write(`${name}/SKILL.md`, `---\nname: ${name}\ndescription: ${description}\n---\n\n${body}`);
}

const load = (name: string): ScriptStep => ({
  toolCalls: [{ name: 'load_skill', input: { name } }],
});
const read = (name: string, path: string): ScriptStep => ({
  toolCalls: [{ name: 'read_skill_file', input: { name, path } }],
});

type Options = Partial<AgentOptions<undefined, undefined, undefined, undefined, undefined>>;

function open(script: readonly ScriptStep[], options: Options = {}, store = memoryStore()) {
  const model = scriptedModel(script);
  const app = waymark({ model, store });
  const agent = app.defineAgent({ name: 'writer', system: 'You write.', skills, ...options });
  return { app, agent, model };
}

/** The output of the tool call before the last answer. */
function outputOf(messages: readonly { readonly content: readonly object[] }[]): unknown {
  const parts = messages.flatMap(({ content }) => content) as {
    readonly toolResponse?: { readonly output: unknown };
  }[];
  return parts.findLast(({ toolResponse }) => toolResponse !== undefined)?.toolResponse?.output;
}

async function resultOf(step: ScriptStep, options?: Options): Promise<unknown> {
  const { agent, model } = open([step, 'Done.'], options);
  await agent.run('Go');
  return outputOf(model.requests[1]?.messages ?? []);
}

describe('the prompt', () => {
  test('S830 has names and descriptions by name, and the tools that load the rest', async () => {
    add('changelog', '>-\n  Keeps the\n  changelog.', 'x');
    const { agent, model } = open(['one', 'two']);
    const first = await agent.run('Hi');
    await agent.run('Hi', { sessionId: first.sessionId });
    const [system, again] = model.requests.map(({ messages }) => textOf(messages[0]));
    expect(system).toMatch(/^You write\.\n\nSkills are/);
    expect(system?.split('\n').slice(-2)).toEqual([
      '- changelog: Keeps the changelog.',
      '- release-notes: Writes release notes. Use it for a new version.',
    ]);
    expect(system).not.toContain('List the changes');
    expect(again).toBe(system);
    const tools = model.requests.map((request) => request.tools.map(({ name }) => name));
    expect(tools).toEqual([
      ['load_skill', 'read_skill_file'],
      ['load_skill', 'read_skill_file'],
    ]);
  });

  test('S830 is the same whatever order the folders are named in', async () => {
    write('../more/changelog/SKILL.md', '---\nname: changelog\ndescription: Other.\n---\nBody');
    const more = join(base, 'more');
    const prompts: string[] = [];
    for (const each of [
      [skills, more],
      [more, skills],
    ]) {
      const { agent, model } = open(['Hi'], { skills: each });
      await agent.run('Hi');
      prompts.push(textOf(model.requests[0]?.messages[0]));
    }
    expect(prompts[0]).toBe(prompts[1]);
  });

  test('S830 an agent has the skills of the app unless it names its own', async () => {
    const model = scriptedModel({ patterns: [], otherwise: 'Hi' });
    const app = waymark({ model, store: memoryStore(), skills });
    const agents = [
      app.defineAgent({ name: 'default' }),
      app.defineAgent({ name: 'none', skills: [] }),
    ];
    for (const agent of agents) await agent.run('Hi');
    expect(model.requests.map(({ tools }) => tools.length)).toEqual([2, 0]);
  });

  test('S830 one skill can be named by its own folder', async () => {
    const { agent, model } = open(['Hi'], { skills: join(skills, 'release-notes') });
    await agent.run('Hi');
    expect(textOf(model.requests[0]?.messages[0])).toContain('- release-notes:');
  });
});

describe('the tools', () => {
  test('S831 load the instructions and read files one by one', async () => {
    write('release-notes/references/STYLE.md', 'Be brief.');
    write('release-notes/.git/config', 'hidden');
    expect(await resultOf(load('release-notes'))).toEqual({
      skill: 'release-notes',
      version: expect.stringMatching(/^[0-9a-f]{64}$/),
      instructions: 'List the changes.',
      files: ['references/STYLE.md'],
    });
    expect(await resultOf(read('release-notes', 'references/STYLE.md'))).toMatchObject({
      skill: 'release-notes',
      path: 'references/STYLE.md',
      text: 'Be brief.',
    });
  });

  test('S831 name the folder by a variable that commands of the shell have', async () => {
    write('release-notes/scripts/list.sh', 'echo "ran in $(basename $PWD)"');
    const project = join(base, 'project');
    mkdirSync(project);
    const options = { workspace: directory(project), tools: [workspaceTools({ shell: true })] };
    const command = 'sh "$SKILL_RELEASE_NOTES/scripts/list.sh"';
    const shell = { toolCalls: [{ name: 'shell', input: { command } }] };
    const { agent, model } = open([load('release-notes'), shell, 'Done.'], options);
    await agent.run('Go');
    expect(outputOf(model.requests[1]?.messages ?? [])).toMatchObject({
      files: ['scripts/list.sh'],
      folder: '$SKILL_RELEASE_NOTES',
    });
    expect(outputOf(model.requests[2]?.messages ?? [])).toMatchObject({
      exitCode: 0,
      output: 'ran in project\n',
    });
  });

  test.each([
    [
      'another skill',
      load('release-note'),
      /no skill \\"release-note\\"\. There are: release-notes/,
    ],
    ['a file outside', read('release-notes', '../../secret'), /no file/],
    ['an absolute path', read('release-notes', '/etc/passwd'), /no file/],
    ['a file that is hidden', read('release-notes', '.env'), /no file/],
    ['bytes', read('release-notes', 'assets/logo.png'), /not text/],
    ['a large file', read('release-notes', 'assets/log.txt'), /262145 bytes; the limit is 262144/],
  ])('S831 refuse %s', async (_, step, message) => {
    write('../secret', 'secret');
    write('release-notes/.env', 'KEY=1');
    write('release-notes/assets/log.txt', 'x'.repeat(262_145));
    write('release-notes/assets/logo.png', '');
    writeFileSync(join(skills, 'release-notes/assets/logo.png'), Buffer.from([0x89, 0xff, 0xfe]));
    expect(JSON.stringify(await resultOf(step))).toMatch(message);
  });

  test('S831 refuse a link that was made after the start', async () => {
    const { app, agent, model } = open([read('release-notes', 'notes.md'), 'Done.']);
    await app.ready();
    write('../secret', 'secret');
    symlinkSync(join(base, 'secret'), join(skills, 'release-notes/notes.md'));
    await agent.run('Go');
    const output = JSON.stringify(outputOf(model.requests[1]?.messages ?? []));
    expect(output).toMatch(/link out of its folder/);
    expect(output).not.toContain(base);
  });
});

describe('the version', () => {
  /** Of the skill that a turn loaded last. */
  async function versionIn(
    agent: Agent,
    { snapshotId }: { readonly snapshotId?: string | undefined },
  ) {
    const snapshot = await agent.getSnapshot(snapshotId ?? '');
    return (outputOf(snapshot?.state?.messages ?? []) as { readonly version: string }).version;
  }

  test('S832 of each loaded skill is in the snapshot, and diff shows another one', async () => {
    const store = memoryStore();
    const first = open([load('release-notes'), 'One.'], {}, store);
    const one = await first.agent.run('Write');
    // The skill is edited while the app runs.
    add('release-notes', 'Writes release notes. Use it for a new version.', 'Be brief.');
    const second = open([load('release-notes'), 'Two.', 'Three.'], {}, store);
    const two = await second.agent.run('Write', { sessionId: one.sessionId });
    const three = await second.agent.run('Thanks', { sessionId: one.sessionId });

    const [before, after] = [
      await versionIn(second.agent, one),
      await versionIn(second.agent, two),
    ];
    const { skills: changes } = await second.agent.diff(one, two);
    expect(changes).toEqual([
      { name: 'release-notes', change: 'changed', from: before, to: after },
    ]);
    expect(before).not.toBe(after);
    expect((await second.agent.diff(two, three)).skills).toBeUndefined();
    expect((await second.agent.diff(two, one)).skills?.[0]).toMatchObject({ to: before });
    const other = await second.agent.fork(one);
    expect((await second.agent.diff(one, other.snapshotId)).skills).toBeUndefined();
  });

  test('S832 changes when any file of the skill does, at the next load', async () => {
    write('release-notes/scripts/list.sh', 'ls');
    const { agent } = open([load('release-notes'), 'One.', load('release-notes'), 'Two.']);
    const one = await agent.run('Write');
    write('release-notes/scripts/list.sh', 'ls -l');
    const two = await agent.run('Write', { sessionId: one.sessionId });
    expect((await agent.diff(one, two)).skills).toMatchObject([{ change: 'changed' }]);
  });

  test('S833 a replay loads the skills of now, and shows the version that was recorded', async () => {
    const script = [load('release-notes'), 'One.'];
    const { app, agent } = open([...script, ...script, ...script]);
    const recorded = await agent.run('Write');
    const same = await replay(app, { sessions: [recorded.sessionId] });
    expect(same.same).toBe(true);
    add('release-notes', 'Writes release notes. Use it for a new version.', 'Be brief.');
    const { turns } = await replay(app, { sessions: [recorded.sessionId] });
    expect(turns[0]?.divergences).toEqual([
      expect.objectContaining({
        path: '/toolCalls/0/output/version',
        recorded: await versionIn(agent, recorded),
        replayed: expect.stringMatching(/^[0-9a-f]{64}$/),
      }),
      expect.objectContaining({
        path: '/toolCalls/0/output/instructions',
        recorded: 'List the changes.',
        replayed: 'Be brief.',
      }),
    ]);
  });

  test('S833 a replay that names the tool answers it from the recording', async () => {
    const script = [load('release-notes'), 'One.'];
    const { app, agent } = open([...script, ...script]);
    const { sessionId } = await agent.run('Write');
    add('release-notes', 'Writes release notes. Use it for a new version.', 'Be brief.');
    const report = await replay(app, { sessions: [sessionId], tools: { load_skill: 'recorded' } });
    expect(report.same).toBe(true);
  });
});

describe('mistakes', () => {
  const frontMatter = (yaml: string) => () => write('bad/SKILL.md', `---\n${yaml}\n---\nBody`);
  test.each<[string, () => void, RegExp]>([
    ['no SKILL.md', () => write('bad/skill.txt', ''), /"[^"]*skills\/bad" has no file SKILL\.md/],
    ['no front matter', () => write('bad/SKILL.md', '# Bad'), /has no front matter/],
    [
      'front matter that does not end',
      () => write('bad/SKILL.md', '---\nname: bad\n'),
      /front matter/,
    ],
    ['no YAML', frontMatter('name: [bad'), /skills\/bad" is not valid YAML/],
    [
      'a colon in a text',
      frontMatter('name: bad\ndescription: Use it: now'),
      /not valid YAML.*Quote/,
    ],
    ['a field twice', frontMatter('name: bad\nname: bad\ndescription: x'), /not valid YAML/],
    ['aliases without end', frontMatter(bomb()), /not valid YAML/],
    ['a list', frontMatter('- name'), /must have fields/],
    ['no name', frontMatter('description: x'), /front matter of the skill .* name/],
    ['no description', frontMatter('name: bad'), /description/],
    [
      'an empty description',
      frontMatter('name: bad\ndescription: " "'),
      /description: Expected a text/,
    ],
    ['a long description', frontMatter(`name: bad\ndescription: ${'x'.repeat(1025)}`), /1,024/],
    ['capitals', frontMatter('name: Bad\ndescription: x'), /name: Expected lower-case/],
    ['two hyphens', frontMatter('name: b--ad\ndescription: x'), /single hyphens/],
    ['another folder', frontMatter('name: good\ndescription: x'), /name "good".*called "bad"/],
    ['long front matter', frontMatter(`name: bad\nx: ${'y'.repeat(20_000)}`), /limit is 16384/],
    ['a body of 10 MB', () => add('bad', 'x', 'x'.repeat(10_000_000)), /limit is 262144/],
    ['many bytes', () => large(), /more than 16777216 bytes/],
    ['many files', () => many(), /more than 512 files/],
    [
      'a link out of its folder',
      () => link('bad/notes.md'),
      /"notes\.md" of the skill .* link out of its folder/,
    ],
    ['a folder that is a link', () => link('linked'), /linked" is a link out of its folder/],
    ['a link to nothing', () => link('bad/gone', 'nowhere'), /does not exist/],
    ['bytes that are no text', () => bytes(), /not UTF-8/],
  ])('S834 %s: an error of ready() and of the turn', async (_, make, message) => {
    make();
    const { app, agent, model } = open(['Hi']);
    await expect(app.ready()).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringMatching(message),
    });
    await expect(agent.run('Hi')).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    expect(model.requests).toEqual([]);
  });

  test('S834 two skills with one name name both folders', async () => {
    write('../more/release-notes/SKILL.md', '---\nname: release-notes\ndescription: x\n---\n');
    const { app } = open(['Hi'], { skills: [skills, join(base, 'more')] });
    await expect(app.ready()).rejects.toThrow(
      /Two skills are called "release-notes": from ".*skills" and ".*more"/,
    );
  });

  test('S834 a folder that does not exist', async () => {
    const { app } = open(['Hi'], { skills: join(base, 'nowhere') });
    await expect(app.ready()).rejects.toThrow(/no folder ".*nowhere" with skills/);
  });

  test('S834 can be mended while the app runs', async () => {
    link('bad/notes.md');
    const { app, agent } = open(['Hi']);
    await expect(app.ready()).rejects.toThrow();
    unlinkSync(join(skills, 'bad/notes.md'));
    write('bad/notes.md', 'mine');
    await app.ready();
    expect((await agent.run('Hi')).text).toBe('Hi');
  });

  test.each([[5], [[5]], [{}], ['']])('S834 refuses %j as skills', (value) => {
    expect(() => open([], { skills: value as never })).toThrow(/skills/);
  });

  test('S834 a tool with the same name is refused', async () => {
    const { app } = open(['Hi'], {});
    const tool = app.defineTool({ name: 'load_skill', description: 'x' }, () => 1);
    app.defineAgent({ name: 'other', skills, tools: [tool] });
    await expect(app.ready()).rejects.toThrow(/Two tools are called "load_skill"/);
  });

  function link(path: string, target = 'outside'): void {
    write('../outside/SKILL.md', 'secret');
    add('bad', 'x', 'x');
    symlinkSync(join(base, target), join(skills, path));
  }
  function large(): void {
    add('bad', 'x', 'x');
    for (const name of ['a', 'b']) write(`bad/${name}`, 'x'.repeat(9 * 2 ** 20));
  }
  function many(): void {
    add('bad', 'x', 'x');
    for (let at = 0; at < 512; at++) write(`bad/files/${at}`, '');
  }
  function bytes(): void {
    add('bad', 'x', 'x');
    writeFileSync(join(skills, 'bad/SKILL.md'), Buffer.from([0x2d, 0x2d, 0x2d, 0x0a, 0xff]));
  }
  function bomb(): string {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let at = 1; at < 9; at++) {
      const each = Array.from({ length: 10 }, () => `*a${at - 1}`).join(', ');
      lines.push(`a${at}: &a${at} [${each}]`);
    }
    return lines.join('\n');
  }
});

describe('a source', () => {
  const failing: SkillSource = {
    name: 'far',
    listSkills: async () => {
      throw new Error('not available');
    },
  };

  test('S835 that is not available is reported, and the turn continues without its skills', async () => {
    const model = scriptedModel(['Hi']);
    const errors: [string, unknown][] = [];
    const app = waymark({
      model,
      store: memoryStore(),
      onError: (error, info) => errors.push([(error as Error).message, info]),
    });
    const agent = app.defineAgent({ name: 'writer', skills: [skills, failing] });
    await app.ready();
    expect(errors).toEqual([
      ['not available', { phase: 'tool', agent: 'writer', toolSource: 'far' }],
    ]);
    await agent.run('Hi');
    expect(textOf(model.requests[0]?.messages[0])).toContain('release-notes');
    expect(errors).toHaveLength(2);
  });
});
