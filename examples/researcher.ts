import { type App, textOf } from 'waymark';
import { z } from 'zod';

const sources = ['archives', 'papers', 'interviews', 'figures', 'maps'] as const;

/** Simulated time to read one source. */
export const readingMs = 1_500;

/** A long background run: detach it, close the page and come back. A killed process loses no completed step. */
export function defineResearcher(
  app: App,
  { pauseMs = readingMs }: { readonly pauseMs?: number } = {},
) {
  return app.defineCustomAgent(
    {
      name: 'researcher',
      description:
        'Reads five sources on the topic you send, one after the other. Made for the background.',
      state: z.object({ read: z.array(z.string()), of: z.number() }),
      initialState: { read: [], of: sources.length },
      status: z.object({ done: z.number(), of: z.number(), reading: z.string() }),
    },
    async (session, { respond, signal }) => {
      await session.run(async (input) => {
        const question = textOf(input.message);
        session.setCustom({ read: [], of: sources.length });
        const findings: string[] = [];
        for (const [done, source] of sources.entries()) {
          await respond.status({ done, of: sources.length, reading: source });
          findings.push(
            await session.step(source, async () => {
              await app.clock.sleep(pauseMs, signal);
              return `The ${source} have something on “${question}”.`;
            }),
          );
          session.updateCustom((draft) => {
            draft.read.push(source);
          });
          await respond.modelChunk({ content: [{ text: `- ${findings.at(-1)}\n` }] });
        }
        await respond.artifact({
          name: 'findings.md',
          parts: [{ text: `# ${question}\n\n${findings.map((line) => `- ${line}`).join('\n')}\n` }],
        });
        session.addMessages({
          role: 'model',
          content: [{ text: findings.map((line) => `- ${line}`).join('\n') }],
        });
      });
    },
  );
}
