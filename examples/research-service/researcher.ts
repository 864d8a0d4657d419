import type { App, ModelRef, Price } from 'waymark';
import { a2aAgentTool } from 'waymark/a2a';
import { z } from 'zod';
import { researchScript } from './script.ts';

// #region price
/** Micro-dollars: $2 per million input tokens, $8 per million output tokens. */
export const price: Price = (_model, { inputTokens = 0, outputTokens = 0 }) => ({
  USD: inputTokens * 2 + outputTokens * 8,
});
// #endregion

/** Settings of the researcher. */
export interface ResearcherOptions {
  /** The A2A address of the archive. */
  readonly archiveUrl: string;
  readonly model?: ModelRef | undefined;
}

/** Asks the archive, writes a report, and stops at its budget. */
export function defineResearcher(
  app: App,
  { archiveUrl, model = researchScript() }: ResearcherOptions,
) {
  // #region tools
  const archive = a2aAgentTool(archiveUrl, {
    name: 'archive',
    description: 'Finds documents. Say what you are looking for.',
  });
  const writeReport = app.defineTool(
    {
      name: 'write_report',
      description: 'Saves the report',
      input: z.object({ title: z.string(), text: z.string() }),
    },
    ({ title, text }, { session }) => {
      session.addArtifacts({ name: 'report.md', parts: [{ text: `# ${title}\n\n${text}\n` }] });
      return 'saved';
    },
  );
  // #endregion

  // #region agent
  return app.defineAgent({
    name: 'researcher',
    description: 'Researches a question in the archive and writes a report.',
    model,
    system: 'You research questions. Ask the archive, then write a short report with its sources.',
    tools: [archive, writeReport],
    maxTurns: 50,
    limits: {
      turn: { cost: { USD: 20_000 }, timeout: 10 * 60_000 }, // two cents and ten minutes per question
      owner: { cost: { USD: 1_000_000 }, per: 'day' }, // a dollar a day for each client
    },
  });
  // #endregion
}
