import { run } from '@openai/agents';
import { guide } from '../01-text-answer/openai-agents.ts';

// #region task
const turn = await run(guide, 'Two days in Lisbon', { stream: true });
for await (const text of turn.toTextStream()) process.stdout.write(text);
// #endregion
