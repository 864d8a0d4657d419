import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { agentsFile, command, tempFolder } from './support/command.ts';
import { inTerminal } from './support/fake-terminal.ts';

const folder = tempFolder();
const file = ['--file', agentsFile];
const run = (...args: string[]) => command(folder.path, args);

beforeAll(async () => {
  for (const session of ['one', 'two']) {
    const input = 'note tea\nnote coffee\nnote cake\n';
    await command(folder.path, ['chat', 'talker', '--session', session, ...file], { input });
  }
});
afterAll(() => folder.remove());

describe('export and import', () => {
  test('carry sessions from one store to another, whole', async () => {
    const out = await run('export', '--all', '--out', 'all.jsonl', ...file);
    expect(out).toMatchObject({ code: 0, stdout: '', stderr: 'Wrote 2 sessions to all.jsonl.\n' });
    const into = ['--store', 'file:copy'];
    expect(await run('import', 'all.jsonl', ...into)).toMatchObject({
      code: 0,
      stdout: 'Imported 2 sessions.\n',
    });
    const [verified, again] = [
      await run('verify', '--json', ...into),
      await run('import', 'all.jsonl', ...into),
    ];
    expect(verified.code).toBe(0);
    expect(JSON.parse(verified.stdout)).toMatchObject({ checked: 6, faults: [] });
    expect(again.code).toBe(4);
    const back = await run('export', 'one', '--agent', 'talker', ...into);
    const original = readFileSync(join(folder.path, 'all.jsonl'), 'utf8').split('\n');
    const content = (line: string): unknown => JSON.parse(line).content;
    expect(original.slice(0, 2).map(content)).toContainEqual(content(back.stdout));
  });

  test('say what is wrong with a file', async () => {
    writeFileSync(join(folder.path, 'bad.jsonl'), '{"no":"export"}\n');
    const bad = await run('import', 'bad.jsonl', ...file);
    expect(bad).toMatchObject({ code: 2 });
    expect(bad.stderr).toBe('✗ Line 1 of bad.jsonl is not an exported session.\n');
    expect((await run('import', 'nowhere.jsonl', ...file)).code).toBe(3);
    expect((await run('export', 'nothing', ...file)).code).toBe(3);
  });
});

describe('prune', () => {
  test('needs to be told what may go', async () => {
    const [nothing, nonsense] = [
      await run('prune', ...file),
      await run('prune', '--older-than', 'old', ...file),
    ];
    expect([nothing.code, nonsense.code]).toEqual([2, 2]);
    expect(nonsense.stderr).toContain('12h, 30d or 8w');
  });

  test('shows what an app without owners would lose', async () => {
    const { code, stdout } = await run('prune', '--keep-last', '2', '--dry-run', ...file);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Would delete 2 snapshots and 0 sessions\.\nSESSION/);
    expect(stdout).toContain('Sessions that have an owner are pruned as well');
  });

  test('keeps the newest of each session', async () => {
    const args = ['prune', '--keep-last', '2', '--json', '--store', 'file:copy'];
    const pruned = await run(...args, '--yes');
    expect(JSON.parse(pruned.stdout)).toEqual({ snapshots: 2, sessions: 0 });
    expect((await run('verify', '--store', 'file:copy')).code).toBe(0);
  });
});

describe('verify', () => {
  test('finds a message that was changed behind the back of the store', async () => {
    await run('import', 'all.jsonl', '--store', 'sqlite:broken.db');
    const database = new DatabaseSync(join(folder.path, 'broken.db'));
    const { changes } = database
      .prepare(`UPDATE messages SET body = replace(body, 'note coffee', 'note poison')`)
      .run();
    database.close();
    expect(Number(changes)).toBeGreaterThan(0);
    const { code, stdout, stderr } = await run('verify', '--store', 'sqlite:broken.db');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^hash /m);
    expect(stderr).toMatch(/found \d+ faults?/);
  });

  test('shows what it has found when it is stopped, and says what it leaves out when it continues', async () => {
    const stopped = { interrupts: true };
    const check = ['verify', '--store', 'sqlite:broken.db'];
    const first = await inTerminal(folder.path, check, '', stopped);
    expect(first.code).toBe(130);
    expect(first.stdout).toMatch(/^hash /m);
    const [, cursor = ''] =
      /Stopped\. Found \d+ faults? so far\. To continue, add --from (\S+)\.\n/.exec(first.stderr) ??
      [];
    const rest = await inTerminal(folder.path, [...check, '--from', cursor], '');
    expect(rest).toMatchObject({ code: 0, stdout: '' });
    expect(rest.stderr).toMatch(/^Checked the rest of the store, found no faults\.\n/);
    expect(rest.stderr).toContain("The database's own check was skipped");

    const json = await inTerminal(folder.path, [...check, '--json'], '', stopped);
    expect(JSON.parse(json.stdout)).toMatchObject({
      cursor,
      faults: expect.arrayContaining([expect.objectContaining({ kind: 'hash' })]),
    });
    const jsonRest = await inTerminal(folder.path, [...check, '--json', '--from', cursor], '');
    expect(JSON.parse(jsonRest.stdout)).toMatchObject({ from: cursor, faults: [] });
  });

  test('does not make a store out of a mistyped path', async () => {
    expect(await run('verify', '--store', 'sqlite:nowhere.db')).toMatchObject({
      code: 3,
      stderr: '✗ There is no store at nowhere.db.\n',
    });
    expect((await run('verify', '--store', 'tape:x')).code).toBe(2);
  });
});

describe('erase', () => {
  test('needs --yes without a terminal', async () => {
    expect(await run('erase', 'two', ...file)).toMatchObject({ code: 2 });
    expect(await run('erase', 'two', '--yes', ...file)).toMatchObject({
      code: 0,
      stdout: 'Deleted 1 session.\n',
    });
    expect((await run('erase', 'two', '--yes', ...file)).code).toBe(3);
    const { items } = JSON.parse((await run('sessions', '--json', ...file)).stdout);
    expect(items.map((each: { sessionId: string }) => each.sessionId)).toEqual(['one']);
  });
});

describe('migrate', () => {
  test('leaves a store that is up to date as it is, and makes none at a mistyped path', async () => {
    const done = await run('migrate', '--store', 'sqlite:waymark.db', '--json');
    expect(JSON.parse(done.stdout)).toEqual({ store: 'sqlite', ready: true });
    for (const _ of [1, 2]) {
      const missing = await run('migrate', '--store', 'sqlite:waymrk.db');
      expect(missing).toMatchObject({ stdout: '', stderr: expect.stringContaining('no store at') });
      expect(missing.code).not.toBe(0);
    }
  });
});

describe('usage', () => {
  test('S382 shows tokens by owner, agent, model or day', async () => {
    const shown = await run('usage', '--by', 'agent', ...file);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^AGENT +CALLS +INPUT/) });
    expect(shown.stdout).toContain('talker');
    const { items } = JSON.parse((await run('usage', '--by', 'day', '--json', ...file)).stdout);
    expect(items).toEqual([
      {
        key: expect.stringMatching(/^\d{4}-/),
        calls: expect.any(Number),
        usage: expect.any(Object),
      },
    ]);
    expect((await run('usage', '--by', 'moon', ...file)).code).toBe(2);
    const nobody = await run('usage', '--owner', 'nobody', ...file);
    expect(nobody).toMatchObject({ code: 0, stdout: '', stderr: 'Nothing was spent.\n' });
  });
});
