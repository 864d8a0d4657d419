import { Mastra } from '@mastra/core';
import { storage } from '../../given/mastra.ts';
import { port, userOf } from '../../given/users.ts';
import { guide } from '../01-text-answer/mastra.ts';

// #region task
const mastra = new Mastra({
  agents: { guide },
  storage,
  server: {
    port,
    auth: {
      authenticateToken: async (token) => userOf(token),
      mapUserToResourceId: (user) => user.id,
    },
  },
});

// #endregion

export { mastra };
