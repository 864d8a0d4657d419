import { Agent } from '@mastra/core/agent';
import { Memory } from '@mastra/memory';
import { z } from 'zod';
import { model, storage } from '../../given/mastra.ts';

// #region task
const trip = z.object({ likes: z.array(z.string()) });
const memory = new Memory({
  storage,
  options: { workingMemory: { enabled: true, scope: 'thread', schema: trip } },
});
const planner = new Agent({ id: 'planner', name: 'Planner', instructions: 'Help.', model, memory });
const place = { thread: 'thread-1', resource: 'user-1' };
await planner.generate('I like museums', { memory: place });
const state = await memory.getWorkingMemory({ threadId: 'thread-1', resourceId: 'user-1' });
console.log(state && trip.parse(JSON.parse(state)).likes);
// #endregion
