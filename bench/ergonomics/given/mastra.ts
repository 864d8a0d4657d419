import { LibSQLStore } from '@mastra/libsql';

export const model = 'openai/gpt-5';
// #region task
const storage = new LibSQLStore({ id: 'storage', url: 'file:mastra.db' });

// #endregion

export { storage };
