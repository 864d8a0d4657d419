import { createInMemoryStorage } from 'evalite/in-memory-storage';
import { runEvalite } from 'evalite/runner';

await runEvalite({
  cwd: import.meta.dirname,
  mode: 'run-once-and-exit',
  scoreThreshold: 100,
  outputPath: process.argv[2],
  storage: createInMemoryStorage(),
});
