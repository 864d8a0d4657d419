import { isTurnError } from 'waymark';
import { guide } from '../01-text-answer/waymark.ts';

// #region task
try {
  await guide.run('Two days in Atlantis');
} catch (error) {
  if (!isTurnError(error)) throw error;
  console.error(error.message, error.cause);
}
// #endregion
