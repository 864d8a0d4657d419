import { AgentError } from 'genkit/beta';
import { guide } from '../01-text-answer/genkit.ts';

// #region task
try {
  await guide.chat().send('Two days in Atlantis');
} catch (error) {
  if (!(error instanceof AgentError)) throw error;
  console.error(error.message, error.details);
}
// #endregion
