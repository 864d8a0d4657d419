import { setTimeout as pause } from 'node:timers/promises';

/** Waits 0 to 20 ms, different for each number, so that what follows meets a process at different moments. No result depends on it. */
export async function someMoment(no: number): Promise<void> {
  await pause((no * 37) % 21);
}
