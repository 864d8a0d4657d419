import { FileSessionStore, genkit } from 'genkit/beta';

// #region task
const ai = genkit({ model: 'googleai/gemini-2.5-flash' });
const store = new FileSessionStore('./sessions');

// #endregion

export { ai, store };
