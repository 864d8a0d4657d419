// A measuring process: takes a job, sends its result.
import type { Job } from './job.ts';
import { watchNoise } from './lib/machine.ts';
import { systems } from './systems/all.ts';

process.once('message', async (job: Job) => {
  const stopWatching = watchNoise();
  try {
    const result = await run(job);
    process.send?.({ result, noise: stopWatching() }, () => process.exit(0));
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.send?.({ error: message, noise: stopWatching() }, () => process.exit(1));
  }
});

async function run(job: Job): Promise<unknown> {
  switch (job.measure) {
    case 'floors':
      return await (await import('./measures/floors.ts')).measure(job);
    case 'http':
      return await (await import('./measures/http.ts')).measure(job);
    case 'paced':
      return await (await import('./measures/paced.ts')).measure(job);
    case 'background':
      return await (await import('./measures/background.ts')).measure(job);
    default: {
      const listed = systems[job.system];
      if (listed === undefined) throw new Error(`No system "${job.system}".`);
      const { system } = await listed.load();
      const { measure } = await measures[job.measure]();
      return await measure(system, job);
    }
  }
}

const measures = {
  turns: () => import('./measures/turns.ts'),
  stored: () => import('./measures/stored.ts'),
  'tool-turns': () => import('./measures/tool-turns.ts'),
  resume: () => import('./measures/resume.ts'),
  branch: () => import('./measures/branch.ts'),
  idle: () => import('./measures/idle.ts'),
};
