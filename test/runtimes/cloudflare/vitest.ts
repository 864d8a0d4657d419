// What the conformance suites use of vitest, for tests that run inside workerd. Its matchers are those of vitest.
import { JestAsymmetricMatchers, JestChaiExpect, JestExtend } from '@vitest/expect';
import * as chai from 'chai';

type Run = (context: { readonly skip: (isSkipped?: boolean) => void }) => unknown;

interface Group {
  readonly names: readonly string[];
  readonly before: (() => unknown)[];
  readonly after: (() => unknown)[];
}

let group: Group = { names: [], before: [], after: [] };
const tests: { readonly name: string; readonly group: Group; readonly run: Run }[] = [];

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);

let current = '';
export const expect = Object.assign(
  (value: unknown, message?: string) => chai.expect(value, message),
  chai.expect,
  { getState: () => ({ currentTestName: current }) },
);

export function describe(name: string, declare: () => void): void {
  const outer = group;
  group = {
    names: [...outer.names, name],
    before: [...outer.before],
    after: [...outer.after],
  };
  declare();
  group = outer;
}

export function test(name: string, run: Run): void {
  tests.push({ name: [...group.names, name].join(' > '), group, run });
}

export function beforeEach(hook: () => unknown): void {
  group.before.push(hook);
}

export function afterEach(hook: () => unknown): void {
  group.after.unshift(hook);
}

export const vi = {
  async waitFor(check: () => unknown, { timeout = 1_000, interval = 50 } = {}): Promise<void> {
    const end = Date.now() + timeout;
    for (;;) {
      try {
        await check();
        return;
      } catch (error) {
        if (Date.now() > end) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, interval));
    }
  },
};

export function names(): readonly string[] {
  return tests.map(({ name }) => name);
}

class Skipped extends Error {}

/** Runs one test. */
export async function runTest(at: number): Promise<'passed' | 'skipped'> {
  const found = tests[at];
  if (found === undefined) throw new Error(`There is no test ${at}.`);
  current = found.name;
  const skip = (isSkipped = true): void => {
    if (isSkipped) throw new Skipped();
  };
  for (const hook of found.group.before) await hook();
  try {
    await found.run({ skip });
    return 'passed';
  } catch (error) {
    if (error instanceof Skipped) return 'skipped';
    throw error;
  } finally {
    for (const hook of found.group.after) await hook();
  }
}
