import { peakMemory } from './peak-memory.ts';

/** How an event loop did. */
export interface LoopMeasure {
  /** The longest time for which it was blocked, in milliseconds. */
  readonly blockedMs: number;
  /** What 99 of 100 looks found at most. */
  readonly blockedP99Ms: number;
  /** How many bytes of memory the process had at most. */
  readonly memoryBytes: number;
}

/** Watches the event loop of this process. */
export interface LoopWatch {
  /** The measure since it was last asked for. */
  measure(): LoopMeasure;
  /** Runs something that does not count: it belongs to the measuring, not to the server. */
  uncounted<T>(call: () => Promise<T>): Promise<T>;
}

/** Milliseconds between two looks. */
const stepMs = 10;

/** Looks are counted by tenths of a millisecond, up to a second. A list of them would grow with the length of an attack. */
const perMs = 10;
const mostTenths = 1000 * perMs;

/**
 * Looks at the event loop of this process every few milliseconds. A look that comes late says that the loop was blocked,
 * or that the machine gave the process no time: so no more than the CPU time of this thread counts.
 */
export function watchLoop(): LoopWatch {
  const memory = peakMemory();
  const looks = new Uint32Array(mostTenths + 1);
  let blockedMs = 0;
  let memoryBytes = 0;
  let isCounted = true;
  let last = performance.now();
  let lastCpu = threadCpuMs();
  const count = (ms: number): void => {
    blockedMs = Math.max(blockedMs, ms);
    const tenths = Math.min(Math.ceil(ms * perMs), mostTenths);
    looks[tenths] = (looks[tenths] ?? 0) + 1;
  };
  const look = (): void => {
    const now = performance.now();
    const cpu = threadCpuMs();
    if (isCounted) count(Math.max(0, Math.min(now - last - stepMs, cpu - lastCpu)));
    last = now;
    lastCpu = cpu;
    memory.look();
  };
  setInterval(look, stepMs).unref();
  return {
    measure() {
      look();
      const measured = {
        blockedMs,
        // A tenth is rounded up, which the longest is not.
        blockedP99Ms: Math.min(percentile99(looks) / perMs, blockedMs),
        memoryBytes: Math.max(memoryBytes, memory.peak()),
      };
      looks.fill(0);
      blockedMs = 0;
      memory.reset();
      memoryBytes = 0;
      return measured;
    },
    async uncounted(call) {
      look();
      memoryBytes = Math.max(memoryBytes, memory.peak());
      isCounted = false;
      try {
        return await call();
      } finally {
        look();
        memory.reset();
        isCounted = true;
      }
    },
  };
}

/** The index that the look at 99 of 100 was counted under. */
function percentile99(counts: Uint32Array): number {
  let left = Math.floor(counts.reduce((sum, count) => sum + count, 0) * 0.99);
  const at = counts.findIndex((count) => {
    left -= count;
    return left < 0;
  });
  return Math.max(at, 0);
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
