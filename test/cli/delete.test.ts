/** What prune and erase show and ask before they delete. */
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { type Agent, waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { agentsFile, command, tempFolder } from './support/command.ts';
import { inTerminal } from './support/fake-terminal.ts';

const folder = tempFolder();
afterAll(() => folder.remove());

let round = 0;
let store: string;
beforeEach(async () => {
  const name = `round-${++round}.db`;
  store = `sqlite:${name}`;
  const app = waymark({
    store: sqliteStore(join(folder.path, name)),
    model: scriptedModel({ patterns: [], otherwise: 'Yes.' }),
  });
  const talker = app.defineAgent({ name: 'talker' });
  for (const sessionId of ['alpha-1', 'alpha-2']) await talk(talker, { sessionId });
  await talk(talker, { sessionId: 'hers', owner: 'ada' });
  await app.close();
});

async function talk(agent: Agent, options: { sessionId: string; owner?: string }): Promise<void> {
  for (const text of ['one', 'two', 'three']) await agent.runText(text, options);
}

const sessionsOf = async (owner?: string): Promise<string[]> => {
  const whose = owner === undefined ? [] : ['--owner', owner];
  const args = ['export', '--all', '--agent', 'talker', '--store', store, ...whose];
  const { stdout } = await inTerminal(folder.path, args, '');
  const lines = stdout.split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line).session.sessionId).sort();
};
const type = (answer: string, ...args: string[]) =>
  inTerminal(folder.path, [...args, '--store', store], answer);

describe('erase', () => {
  test('shows the session and asks; anything but yes deletes nothing', async () => {
    const no = await type('no', 'erase', 'alpha-1', '--agent', 'talker');
    expect(no.code).toBe(130);
    expect(no.stdout).toMatch(/Would delete session alpha-1 of agent talker: 1 session\.\nSESSION/);
    expect(no.stdout).toMatch(/^alpha-1 +talker +3 /m);
    expect(no.stderr).toBe('✗ Nothing was deleted.\n');
    expect(await sessionsOf()).toEqual(['alpha-1', 'alpha-2']);
    const yes = await type('y', 'erase', 'alpha-1', '--agent', 'talker');
    expect(yes.code).toBe(0);
    expect(yes.stdout).toContain('Deleted 1 session.');
    expect(await sessionsOf()).toEqual(['alpha-2']);
  });

  test('with --dry-run deletes nothing, and asks nothing', async () => {
    const one = await type('', 'erase', 'alpha-1', '--agent', 'talker', '--dry-run');
    expect(one).toMatchObject({ code: 0 });
    const json = await type('', 'erase', '--owner', 'ada', '--dry-run', '--json');
    expect(JSON.parse(json.stdout)).toEqual({ dryRun: true, sessions: 1 });
    expect([await sessionsOf(), await sessionsOf('ada')]).toEqual([
      ['alpha-1', 'alpha-2'],
      ['hers'],
    ]);
  });

  test('deletes all sessions of an owner', async () => {
    const { code, stdout } = await type('yes', 'erase', '--owner', 'ada');
    expect(code).toBe(0);
    expect(stdout).toContain('Would delete all sessions of owner "ada": 1 session.');
    expect([await sessionsOf(), await sessionsOf('ada')]).toEqual([['alpha-1', 'alpha-2'], []]);
  });

  test('refuses an ambiguous prefix, and lists the candidates', async () => {
    const { code, stderr } = await type('yes', 'erase', 'alpha', '--agent', 'talker');
    expect(code).toBe(2);
    expect(stderr).toMatch(/"alpha" matches 2 sessions\. .*\n +alpha-\d +talker +one\n +alpha-\d/);
    expect(await sessionsOf()).toEqual(['alpha-1', 'alpha-2']);
    expect((await type('yes', 'erase', 'alpha-2', '--agent', 'talker')).code).toBe(0);
    expect((await type('yes', 'erase', 'alph', '--agent', 'talker')).code).toBe(0);
    expect(await sessionsOf()).toEqual([]);
  });
});

describe('prune', () => {
  const keepOne = ['prune', '--keep-last', '1'];

  test('counts what would be deleted in the whole store, for all owners, and asks', async () => {
    const dry = await type('', ...keepOne, '--dry-run');
    expect(dry).toMatchObject({ code: 0, stdout: 'Would delete 6 snapshots and 0 sessions.\n' });
    const no = await type('no', ...keepOne);
    expect(no).toMatchObject({ code: 130, stderr: '✗ Nothing was deleted.\n' });
    const yes = await type('yes', ...keepOne);
    expect(yes.stdout).toContain('Deleted 6 snapshots and 0 sessions.');
    const again = await type('', ...keepOne);
    expect(again).toMatchObject({ code: 0, stdout: 'Nothing to delete: no snapshot matches.\n' });
  });

  test('lists the sessions of an agent; the preview is what is deleted', async () => {
    const args = [...keepOne, '--agent', 'talker', '--keep-session', 'alpha-1'];
    const dry = await type('', ...args, '--dry-run');
    expect(dry.stdout).toMatch(/^Would delete 2 snapshots and 0 sessions\.\nSESSION/);
    expect(dry.stdout).toMatch(/^alpha-2 +2 /m);
    expect(dry.stdout).not.toContain('alpha-1');
    const json = await type('', ...args, '--yes', '--json');
    expect(JSON.parse(json.stdout)).toEqual({ snapshots: 2, sessions: 0 });
  });

  test('refuses a session to keep that does not exist', async () => {
    const typo = await type('yes', ...keepOne, '--agent', 'talker', '--keep-session', 'alpah-1');
    expect(typo.code).toBe(3);
    const unchecked = await type('yes', ...keepOne, '--keep-session', 'alpha-1');
    expect(unchecked.code).toBe(2);
    expect((await type('', ...keepOne, '--dry-run')).stdout).toContain('6 snapshots');
  });
});

describe('without a terminal', () => {
  test('both refuse without --yes, before anything is opened', async () => {
    for (const args of [
      ['erase', 'x'],
      ['prune', '--keep-last', '1'],
    ]) {
      const { code, stderr } = await command(folder.path, [...args, '--file', agentsFile]);
      expect(code).toBe(2);
      expect(stderr).toContain(
        'Use --dry-run to see what would be deleted, and --yes to delete it',
      );
    }
  });
});
