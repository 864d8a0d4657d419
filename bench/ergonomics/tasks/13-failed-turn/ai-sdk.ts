import { APICallError } from 'ai';
import { guide } from '../01-text-answer/ai-sdk.ts';

// #region task
try {
  await guide.generate({ prompt: 'Two days in Atlantis' });
} catch (error) {
  if (!APICallError.isInstance(error)) throw error;
  console.error(error.message, error.cause);
}
// #endregion
