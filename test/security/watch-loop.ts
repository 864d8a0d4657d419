/** How an event loop did since it was last asked. */
export interface LoopMeasure {
  /** The longest time for which it was blocked, in milliseconds. */
  readonly blockedMs: number;
  /** What 99 of 100 looks found at most. */
  readonly blockedP99Ms: number;
  /** How much memory the process had at most, in bytes. */
  readonly memoryBytes: number;
}

/** Milliseconds between two looks. */
const stepMs = 10;

/**
 * Looks at the event loop of this process every few milliseconds. A look that comes late says that the loop was blocked,
 * or that the machine gave the process no time: so no more than the CPU time of this thread counts.
 */
export function watchLoop(): { measure(): LoopMeasure } {
  let looks: number[] = [];
  let memoryBytes = 0;
  let last = performance.now();
  let lastCpu = threadCpuMs();
  setInterval(() => {
    const now = performance.now();
    const cpu = threadCpuMs();
    looks.push(Math.max(0, Math.min(now - last - stepMs, cpu - lastCpu)));
    last = now;
    lastCpu = cpu;
    memoryBytes = Math.max(memoryBytes, process.memoryUsage.rss());
  }, stepMs).unref();
  return {
    measure() {
      looks.sort((a, b) => a - b);
      const measured = {
        blockedMs: looks.at(-1) ?? 0,
        blockedP99Ms: looks[Math.floor(looks.length * 0.99)] ?? 0,
        memoryBytes,
      };
      looks = [];
      memoryBytes = process.memoryUsage.rss();
      return measured;
    },
  };
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
