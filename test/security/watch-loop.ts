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

/**
 * Looks at the event loop of this process every few milliseconds. A look that comes late says that the loop was blocked,
 * or that the machine gave the process no time: so no more than the CPU time of this thread counts.
 */
export function watchLoop(): LoopWatch {
  const memory = peakMemory();
  let looks: number[] = [];
  let memoryBytes = 0;
  let isCounted = true;
  let last = performance.now();
  let lastCpu = threadCpuMs();
  const look = (): void => {
    const now = performance.now();
    const cpu = threadCpuMs();
    if (isCounted) looks.push(Math.max(0, Math.min(now - last - stepMs, cpu - lastCpu)));
    last = now;
    lastCpu = cpu;
    memory.look();
  };
  setInterval(look, stepMs).unref();
  return {
    measure() {
      look();
      looks.sort((a, b) => a - b);
      const measured = {
        blockedMs: looks.at(-1) ?? 0,
        blockedP99Ms: looks[Math.floor(looks.length * 0.99)] ?? 0,
        memoryBytes: Math.max(memoryBytes, memory.peak()),
      };
      looks = [];
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

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
