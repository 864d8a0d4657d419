import { AgentsError, run } from '@openai/agents';
import { guide } from '../01-text-answer/openai-agents.ts';

// #region task
try {
  await run(guide, 'Two days in Atlantis');
} catch (error) {
  if (!(error instanceof AgentsError)) throw error;
  console.error(error.message, error.cause);
}
// #endregion
