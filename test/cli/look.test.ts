import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { agentsFile, command, tempFolder } from './support/command.ts';

const folder = tempFolder();
const file = ['--file', agentsFile];
const run = (...args: string[]) => command(folder.path, [...args, ...file]);
const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout);

interface Shot {
  readonly snapshotId: string;
  readonly turnIndex: number;
  readonly orphaned: boolean;
}

let sessionId: string;
let shots: readonly Shot[];
const shot = (turn: number, orphaned = false): string =>
  shots.find((each) => each.turnIndex === turn - 1 && each.orphaned === orphaned)?.snapshotId ?? '';

// One conversation with a branch: tea, then coffee; back; then cake.
beforeAll(async () => {
  const lines = ['note tea', 'note coffee', '/back', 'note cake', 'fail'];
  const input = `${lines.join('\n')}\n`;
  await command(folder.path, ['chat', 'talker', '--session', 'trip', ...file], { input });
  const sessions = await json('sessions');
  sessionId = sessions.items[0].sessionId;
  shots = (await json('snapshots', sessionId)).items;
});
afterAll(() => folder.remove());

describe('sessions', () => {
  test('are listed with their agent and their turns, and found by a text', async () => {
    expect(sessionId).toBe('trip');
    const [all, found, none] = await Promise.all([
      run('sessions'),
      run('sessions', '--query', 'trip', '--agent', 'talker'),
      run('sessions', '--query', 'nothing'),
    ]);
    expect(all.stdout).toMatch(/^trip {5}talker {2}2 {6}\d{4}-\d\d-\d\d \d\d:\d\d/m);
    expect(found.stdout).toContain('trip');
    expect(none).toMatchObject({ code: 0, stdout: '' });
  });
});

describe('snapshots', () => {
  test('are drawn as a tree, with the shape of each telling what it is', async () => {
    const { stdout } = await run('snapshots', 'trip');
    const drawn = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/[0-9a-f-]{36} {2}/, ''));
    expect(drawn).toEqual([
      '●     1  note tea',
      '├─○   2  note coffee  [orphaned]',
      '◉     2  note cake  [head]',
      '✗     3  fail  [failed]',
    ]);
  });

  test('of an unknown session are exit code 3', async () => {
    expect(await run('snapshots', 'nowhere')).toMatchObject({ code: 3, stdout: '' });
  });
});

describe('show', () => {
  test('prints the conversation, the state and the artifacts of a moment', async () => {
    const { stdout } = await run('show', shot(2, true));
    expect(stdout).toContain('status    succeeded, stop, orphaned');
    expect(stdout).toContain('You    note coffee');
    expect(stdout).toContain('→ note {"topic":"coffee"}');
    expect(stdout).toMatch(/"tea",\n\s+"coffee"/);
    expect(stdout).not.toContain('cake');
    expect(stdout).toContain('notes.md (4 lines)');
  });

  test('has what the cache of the provider had, what was expected, and what was written', async () => {
    const input = 'cached\ncached again\n';
    await command(folder.path, ['chat', 'talker', '--session', 'cache', ...file], { input });
    const { items } = await json('snapshots', 'cache');
    const second = items.find(({ turnIndex }: Shot) => turnIndex === 1);
    const { stdout } = await run('show', second.snapshotId);
    expect(stdout).toMatch(/^cached +5000$/m);
    expect(stdout).toMatch(/^expected +[1-9]\d+$/m);
    expect(stdout).toMatch(/^written +3000$/m);
  });

  test('writes one artifact as it is, for a file', async () => {
    const { stdout } = await run('show', shot(1), '--artifact', 'notes.md');
    expect(stdout).toBe('# Notes\n\n- tea\n');
    const missing = await run('show', shot(1), '--artifact', 'nope.md');
    expect(missing.code).toBe(3);
    expect(missing.stderr).toContain('the snapshot has notes.md');
  });

  test('gives the snapshot as JSON', async () => {
    expect(await json('show', shot(1))).toMatchObject({
      snapshotId: shot(1),
      status: 'succeeded',
      state: { custom: { topics: ['tea'] } },
    });
  });
});

describe('diff', () => {
  test('shows messages, paths of the state and lines of artifacts', async () => {
    const { stdout } = await run('diff', shot(2, true), shot(2));
    expect(stdout).toContain('- You    note coffee');
    expect(stdout).toContain('+ You    note cake');
    expect(stdout).toContain('~ /topics/1  "coffee" → "cake"');
    expect(stdout).toMatch(/~ notes\.md\n.*\n.*\n {4}- - coffee\n {4}\+ - cake/);
  });

  test('of a snapshot with itself is none', async () => {
    expect((await run('diff', shot(1), shot(1))).stdout).toBe('No difference.\n');
    expect(await json('diff', shot(1), shot(1))).toMatchObject({ custom: [], artifacts: [] });
  });
});
