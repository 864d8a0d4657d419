import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { App, ModelRef } from 'waymark';
import { directory, workspaceTools } from 'waymark/workspace';
import { z } from 'zod';
import { assistantScript } from './script.ts';
import type { Tracker } from './tracker.ts';

/** Settings of the assistant. */
export interface AssistantOptions {
  /** The folder that it works on. In an editor it is the folder that is open there. */
  readonly project: string;
  readonly tracker: Tracker;
  readonly model?: ModelRef | undefined;
}

/** A coding assistant: reads and edits files, runs commands that a person has approved, and opens issues. */
export function defineAssistant(
  app: App,
  { project, tracker, model = assistantScript() }: AssistantOptions,
) {
  // #region issue
  const openIssue = app.defineTool(
    {
      name: 'open_issue',
      description: 'Opens an issue in the tracker of the team, for work that is left.',
      input: z.object({ title: z.string() }),
      output: z.object({ issue: z.number() }),
      undo: ({ output }) => tracker.close(output.issue),
    },
    async ({ title }, { idempotencyKey }) => {
      const { number } = await tracker.open(title, idempotencyKey);
      return { issue: number };
    },
  );
  // #endregion

  // #region agent
  return app.defineAgent({
    name: 'assistant',
    description:
      'Works on the files of a project. Try “Make the tests pass”, then “Open an issue for accents”.',
    model,
    system: 'You work on the files of a project. Read a file before you change it.',
    workspace: (_, { cwd }) => directory(typeof cwd === 'string' ? cwd : project),
    tools: [workspaceTools({ shell: 'ask', env: { PATH: commandPath } }), openIssue],
    skills: fileURLToPath(new URL('skills', import.meta.url)),
    compact: { whenTokens: 100_000, keepTokens: 20_000 },
  });
  // #endregion
}

/** Commands find the `node` that runs this file first: the sample needs one that runs TypeScript. */
const commandPath = `${dirname(process.execPath)}:${process.env.PATH}`;

/** The type of the agent. */
export type Assistant = ReturnType<typeof defineAssistant>;
