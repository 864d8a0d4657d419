import { FileSessionStore, genkit } from 'genkit/beta';
import { disableGenkitOTelInitialization } from 'genkit/tracing';
import { aborted, type OpenBackground, waitForSignal } from './background.ts';

/** Genkit's detached runs: they die with their process, but can be aborted from another one. */
export const open: OpenBackground = async (_, { directory }, onModel) => {
  disableGenkitOTelInitialization();
  const ai = genkit({});
  ai.defineModel(
    { apiVersion: 'v2', name: 'instant', supports: { multiturn: true } },
    async ({ messages }, { abortSignal }) => {
      if (messages.at(-1)?.content[0]?.text === waitForSignal) {
        onModel('called');
        if (abortSignal) await aborted(abortSignal);
        onModel('stopped');
      }
      return { message: { role: 'model', content: [{ text: 'Done.' }] }, finishReason: 'stop' };
    },
  );
  const store = new FileSessionStore(directory);
  const agent = ai.defineAgent({ name: 'bench', model: 'instant', store });
  return {
    detach: async (text) => (await agent.chat().detach(text)).snapshotId,
    abort: async (id) => void (await agent.abort(id)),
    close: async () => {},
  };
};
