import { localEngine, memoryStore, waymark } from '../../../src/index.ts';

/** A file of agents whose queue cannot be read, and that says when its app is closed. */
export const app = waymark({
  store: memoryStore(),
  engine: {
    ...localEngine(),
    recover: () => Promise.reject(new Error('The queue is away.')),
    close: async () => void process.stderr.write('closed\n'),
  },
});
