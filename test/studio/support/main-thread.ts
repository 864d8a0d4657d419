import type { Browser, Page } from 'playwright-core';

/** How long the tasks of a page took on its main thread, in milliseconds, the longest first. */
export interface MainThread {
  /** Time that the processor spent on each; other programs of the machine do not count. */
  readonly busy: readonly number[];
  /** Time that passed. */
  readonly passed: readonly number[];
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly dur?: number;
  readonly tdur?: number;
}

/** An entry in the trace by which the page's own thread is found: a browser has pages of its own, too. */
const mark = 'measured';

const categories = ['toplevel', 'devtools.timeline', 'blink.user_timing'];

/** Measures the tasks of a page while something is done with it. */
export async function measureMainThread(
  browser: Browser,
  page: Page,
  work: () => Promise<void>,
): Promise<MainThread> {
  await browser.startTracing(page, { categories });
  let trace: Buffer;
  try {
    await work();
    await page.evaluate((name) => performance.mark(name), mark);
  } finally {
    trace = await browser.stopTracing();
  }
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: readonly TraceEvent[] };
  const threads = new Set(
    traceEvents.filter(({ name }) => name === mark).map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const tasks = traceEvents.filter(
    ({ name, ph, pid, tid }) => ph === 'X' && threads.has(`${pid} ${tid}`) && /RunTask$/.test(name),
  );
  const longestFirst = (times: readonly number[]): number[] =>
    times.map((time) => Math.round(time / 100) / 10).sort((a, b) => b - a);
  return {
    busy: longestFirst(tasks.map(({ tdur = 0 }) => tdur)),
    passed: longestFirst(tasks.map(({ dur = 0 }) => dur)),
  };
}
