import { MastraError } from '@mastra/core/error';
import { guide } from '../01-text-answer/mastra.ts';

// #region task
try {
  await guide.generate('Two days in Atlantis');
} catch (error) {
  if (!(error instanceof MastraError)) throw error;
  console.error(error.message, error.cause);
}
// #endregion
