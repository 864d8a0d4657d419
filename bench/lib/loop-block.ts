/** How long the event loop stood still at most. */
export interface Blocked {
  /** In milliseconds. On a busy machine, this includes the time in which other processes had the core. */
  readonly wall: number;
  /** Processor time of the thread, in milliseconds: no other process can add to it. */
  readonly cpu: number;
}

/** Watches how long the event loop takes for one round. It keeps the loop busy, so measure times without it. */
export async function blockedBy(work: () => Promise<unknown>): Promise<Blocked> {
  let wall = 0;
  let cpu = 0;
  let isOver = false as boolean;
  let last = { at: performance.now(), used: usedCpu() };
  const look = (): void => {
    const now = { at: performance.now(), used: usedCpu() };
    wall = Math.max(wall, now.at - last.at);
    cpu = Math.max(cpu, now.used - last.used);
    last = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await work();
  isOver = true;
  await new Promise((resolve) => setImmediate(resolve));
  return { wall, cpu };
}

function usedCpu(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
