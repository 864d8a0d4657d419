import { Mastra } from '@mastra/core';
import { createDurableAgent } from '@mastra/core/agent/durable';
import { storage } from '../../given/mastra.ts';
import { guide } from '../01-text-answer/mastra.ts';

// #region task
const durable = createDurableAgent({ agent: guide });
const mastra = new Mastra({ agents: { durable }, storage });
const run = await durable.stream('Read five sources');
console.log(await run.output.text);
durable.abortRunStream(run.runId);

// #endregion

export { mastra };
