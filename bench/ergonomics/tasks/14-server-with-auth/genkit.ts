import { expressHandler } from '@genkit-ai/express';
import express from 'express';
import { UserFacingError } from 'genkit/beta';
import type { ContextProvider } from 'genkit/context';
import { port, userOf } from '../../given/users.ts';
import { guide } from '../01-text-answer/genkit.ts';

// #region task
const contextProvider: ContextProvider = async ({ headers }) => {
  const user = await userOf(headers.authorization);
  if (!user) throw new UserFacingError('UNAUTHENTICATED', 'Not authenticated');
  return { auth: user };
};
const app = express().use(express.json());
app.post('/guide', expressHandler(guide, { contextProvider }));
app.listen(port);
// #endregion
