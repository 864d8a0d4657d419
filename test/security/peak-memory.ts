import { readFileSync, writeFileSync } from 'node:fs';

/** The most memory that this process had, in bytes. */
export interface PeakMemory {
  /** Looks now; only needed where the system does not keep the peak. */
  look(): void;
  peak(): number;
  /** Begins again with what the process has now. */
  reset(): void;
}

/**
 * The peak of the resident memory. Linux keeps it, so that one between two looks is seen too; elsewhere it is the most that
 * a look found.
 */
export function peakMemory(): PeakMemory {
  let seen = 0;
  const look = (): void => {
    seen = Math.max(seen, process.memoryUsage.rss());
  };
  const sampled: PeakMemory = {
    look,
    peak: () => seen,
    reset() {
      seen = 0;
      look();
    },
  };
  try {
    resetKept();
    keptPeak();
  } catch {
    return sampled;
  }
  return { look() {}, peak: keptPeak, reset: resetKept };
}

function keptPeak(): number {
  const [, kilobytes] = /^VmHWM:\s*(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  if (kilobytes === undefined) throw new Error('The system does not tell the peak.');
  return Number(kilobytes) * 1024;
}

// See proc(5): 5 resets the peak to what the process has now.
function resetKept(): void {
  writeFileSync('/proc/self/clear_refs', '5');
}
