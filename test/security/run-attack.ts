import type { Attack, AttackContext } from './attack.ts';
import { type RunningTarget, startTarget } from './target.ts';
import type { LoopMeasure } from './watch-loop.ts';

/** What came of an attack. */
export interface AttackResult {
  readonly requests: number;
  readonly blockedMs: number;
  readonly blockedP99Ms: number;
  /** Megabytes that the process had more at its worst than before. */
  readonly grownMb: number;
  readonly seconds: number;
  /** Figures of the attack's own. */
  readonly notes: readonly string[];
  readonly breaches: readonly string[];
}

/** Runs one attack against a fresh server. */
export async function runAttack({
  setup = {},
  limits: { blockedMs = 100, blockedP99Ms = 50, memoryMb = 300 } = {},
  run,
}: Attack): Promise<AttackResult> {
  const breaches = new Set<string>();
  const check = (condition: boolean, breach: string): void => {
    if (!condition) breaches.add(breach);
  };
  const target = await startTarget(setup);
  await warmUp(target);
  const before = await target.measure();
  const laps: LoopMeasure[] = [];
  const notes: string[] = [];
  const started = performance.now();
  const probe = startProbe(target, check);
  let requests = 0;
  try {
    requests = await run({
      ...target,
      check,
      note: (figure) => notes.push(figure),
      costOf: costOf(target, laps),
    });
  } catch (error) {
    check(false, `the attack failed: ${error instanceof Error ? error.stack : String(error)}`);
  }
  await probe.stop();
  const seconds = (performance.now() - started) / 1000;
  check(target.ended === undefined, `the server ${target.ended}`);
  if (target.ended === undefined) laps.push(await target.measure());
  for (const failure of await target.failures()) check(false, `an unexpected error: ${failure}`);
  await target.stop();
  const worst = (of: (lap: LoopMeasure) => number): number => Math.max(...laps.map(of));
  const result = {
    requests,
    blockedMs: worst((lap) => lap.blockedMs),
    blockedP99Ms: worst((lap) => lap.blockedP99Ms),
    grownMb: (worst((lap) => lap.memoryBytes) - before.memoryBytes) / 2 ** 20,
    seconds,
  };
  check(result.blockedMs <= blockedMs, `the event loop was blocked for more than ${blockedMs} ms`);
  check(result.blockedP99Ms <= blockedP99Ms, `p99 of the event loop is over ${blockedP99Ms} ms`);
  check(result.grownMb <= memoryMb, `the memory grew by more than ${memoryMb} MB`);
  return { ...result, notes, breaches: [...breaches] };
}

// Code that has never run is compiled when it does, which is no attack.
async function warmUp({ url }: RunningTarget): Promise<void> {
  const message = { role: 'user', content: [{ text: 'hello' }, { data: {} }] };
  const headers = { authorization: 'Bearer bob' };
  for (let at = 0; at < 200; at++) {
    const body = JSON.stringify({ input: { message }, data: { message } });
    for (const path of ['agents/chat/turns', 'genkit/chat']) {
      await (await fetch(`${url}/${path}`, { method: 'POST', headers, body })).text();
    }
    await (await fetch(`${url}/healthz`)).text();
  }
}

// CPU time rises by half while other processes use the caches, and garbage is collected later. A call that is too dear is
// made again, up to three times in all: one that really is too dear is so every time.
function costOf(target: RunningTarget, laps: LoopMeasure[]): AttackContext['costOf'] {
  return async (call, most) => {
    // What came before it is no part of it.
    laps.push(await target.measure());
    for (let tries = 1; ; tries++) {
      const before = await target.clear();
      await call();
      const lap = await target.measure();
      const cost = { ...lap, memoryBytes: lap.memoryBytes - before.memoryBytes };
      const isDear = cost.blockedMs > most.blockedMs || cost.memoryBytes > most.memoryBytes;
      if (isDear && tries < 3) continue;
      laps.push(lap);
      return cost;
    }
  };
}

/** Asks for the health all the time: it must be answered under every attack. */
function startProbe(
  { url }: RunningTarget,
  check: (condition: boolean, breach: string) => void,
): { stop(): Promise<void> } {
  let isRunning = true;
  const probing = (async () => {
    while (isRunning) {
      try {
        const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(10_000) });
        await response.text();
        check(response.status === 200, `healthz answered ${response.status}`);
      } catch (error) {
        check(false, `healthz did not answer: ${String(error)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return {
    async stop() {
      isRunning = false;
      await probing;
    },
  };
}
