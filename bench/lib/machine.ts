import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os';

/** What a run was taken on. */
export interface Machine {
  readonly os: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly node: string;
}

export function machine(): Machine {
  return {
    os: `${type()} ${release()}`,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
  };
}

/** How busy the machine was besides us: cores that others used, and the load average at the end. */
export interface Noise {
  readonly otherCores: number | null;
  readonly load: number;
}

/** Starts to look at what else the machine does; the returned function says what it was. */
export function watchNoise(): () => Noise {
  const start = busySeconds();
  const startedAt = performance.now();
  const own = process.cpuUsage();
  return () => {
    const load = Number((loadavg()[0] ?? 0).toFixed(2));
    const end = busySeconds();
    if (start === undefined || end === undefined) return { otherCores: null, load };
    const { user, system } = process.cpuUsage(own);
    const seconds = (performance.now() - startedAt) / 1000;
    const other = (end - start - (user + system) / 1e6) / seconds;
    return { otherCores: Number(Math.max(0, other).toFixed(2)), load };
  };
}

// Only Linux says so.
function busySeconds(): number | undefined {
  try {
    const [, ...ticks] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.split(/\s+/) ?? [];
    const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = ticks.map(Number);
    return (user + nice + system + irq + softirq) / 100;
  } catch {
    return undefined;
  }
}
