import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const main = join(import.meta.dirname, 'main.ts');
const long = process.env.LONG === '1';

// In processes of its own, because it replaces the globals that give time and chance.
async function simulate(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', main, ...args],
    { maxBuffer: 64 * 1024 * 1024 },
  ).catch((error: Error & { readonly stdout?: string }) => {
    throw new Error(error.stdout ?? error.message);
  });
  return stdout;
}

test('S117 S118 S121 S115 S122 processes that die, stall and lose their store break no guarantee', async () => {
  // A fixed number in the short run, so that it does not depend on how busy the machine is.
  const output = long
    ? await simulate('--seconds', '120')
    : await simulate('--seconds', '3600', '--episodes', '60');
  expect(output).toMatch(/\d+ passed, 0 failed/);
});

test('the same seed gives the same schedule', async () => {
  const run = async (): Promise<string> => {
    const output = await simulate('--seed', '7', '--episodes', '4', '--workers', '1', '--digest');
    return output.match(/Schedule .*/)?.[0] ?? '';
  };
  const first = await run();
  expect(first).not.toBe('');
  expect(await run()).toBe(first);
});
