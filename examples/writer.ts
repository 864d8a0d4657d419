import { type App, type ModelRef, textOf } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

/** A custom agent: its turn loop writes an outline and a draft as artifacts and reports its status. */
export function defineWriter(app: App, model: ModelRef = script()) {
  return app.defineCustomAgent(
    {
      name: 'writer',
      description: 'Writes a short piece on a subject, as files that you can go back to.',
      state: z.object({ subject: z.string(), drafts: z.number() }),
      initialState: { subject: '', drafts: 0 },
      status: z.object({ phase: z.enum(['outlining', 'drafting', 'done']) }),
    },
    async (session, { respond, signal, model: asked }) => {
      await session.run(async (input) => {
        const subject = textOf(input.message);
        session.updateCustom((draft) => {
          draft.subject ||= subject;
          draft.drafts++;
        });
        const write = async (task: string): Promise<string> => {
          const { text } = await app.generate({
            model: asked ?? model,
            prompt: `${task}: ${subject}`,
            signal,
          });
          return text;
        };

        await respond.status({ phase: 'outlining' });
        const outline = await session.step('outline', () => write('Outline'));
        await respond.artifact({ name: 'outline.md', parts: [{ text: outline }] });

        await respond.status({ phase: 'drafting' });
        const draft = await session.step('draft', () => write('Draft'));
        await respond.artifact({
          name: 'draft.md',
          parts: [{ text: draft }],
          metadata: { version: session.custom.drafts },
        });

        await respond.status({ phase: 'done' });
        session.addMessages({
          role: 'model',
          content: [
            {
              text: `Draft ${session.custom.drafts} is ready: see \`outline.md\` and \`draft.md\`.`,
            },
          ],
        });
      });
      return session.result();
    },
  );
}

function script(): ModelRef {
  return scriptedModel(
    {
      patterns: [
        [
          /^Outline: (.*)/s,
          ([, subject]) => ({
            text: `# ${subject}\n\n1. How it began\n2. What changed\n3. What stays\n`,
            delay: 300,
          }),
        ],
        [
          /^Draft: (.*)/s,
          ([, subject]) => ({
            text: `# ${subject}\n\nIt began small, as most things do. Then somebody asked a better question.\n\nWhat changed was not the tools but the habit of looking back.\n\nWhat stays is a path one can walk again.\n`,
            delay: 400,
          }),
        ],
      ],
      otherwise: 'Nothing to write about.',
    },
    { name: 'script' },
  );
}
