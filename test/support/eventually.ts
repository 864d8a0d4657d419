import { setTimeout as pause } from 'node:timers/promises';

/** A hang, not a slow machine: nothing that a test waits for takes this long. */
const usualDeadline = 60_000;

/**
 * Repeats a check until it neither throws nor returns `false`, and returns its result. Tests use it instead of a pause of a
 * fixed length. After a minute, or `grace`, it fails and says what it waited for.
 */
export async function eventually<Result>(
  check: () => Result | Promise<Result>,
  what: string = check.toString(),
  grace: number = usualDeadline,
): Promise<Exclude<Result, false>> {
  // Made here, so that its stack names the test.
  const failure = new Error(`Waited ${grace / 1000} s for: ${what}`);
  const deadline = performance.now() + grace;
  for (let tries = 0; ; tries++) {
    try {
      const result = await check();
      if (result !== false) return result as Exclude<Result, false>;
      failure.cause = undefined;
    } catch (error) {
      failure.cause = error;
    }
    if (performance.now() > deadline) throw failure;
    await pause(tries < 20 ? 5 : 25);
  }
}
