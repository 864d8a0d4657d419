import { type App, type ModelRef, type ToolRef, textOf, toolApproval } from 'waymark';
import { z } from 'zod';
import { assistantScript } from './script.ts';
import type { Workspace } from './workspace.ts';

/** Settings of the assistant. */
export interface AssistantOptions {
  readonly workspace: Workspace;
  /** Tools that read files: those of an MCP server. */
  readonly files: readonly ToolRef<unknown>[];
  readonly model?: ModelRef | undefined;
}

/** A coding assistant: reads files, edits drafts of them, and saves a draft when the user approves. */
export function defineAssistant(
  app: App,
  { workspace, files, model = assistantScript() }: AssistantOptions,
) {
  // #region edit
  const editFile = app.defineTool(
    {
      name: 'edit_file',
      description: 'Changes a text in the draft of a file. The text must occur once.',
      input: z.object({ path: z.string(), find: z.string(), replace: z.string() }),
    },
    async ({ path, find, replace }, { session }) => {
      const hasDraft = session.artifacts.some(({ name }) => name === path);
      // The first edit starts from the file. The draft is an artifact: it belongs to the session, and the file stays as it is.
      const text = hasDraft ? undefined : await workspace.read(path);
      if (text !== undefined) session.addArtifacts({ name: path, parts: [{ text }] });
      session.editArtifact(path, [{ find, replace }]);
      return { edited: path };
    },
  );
  // #endregion

  // #region save
  const saveFile = app.defineTool(
    {
      name: 'save_file',
      description: 'Writes the draft of a file to the disk',
      input: z.object({ path: z.string() }),
    },
    async ({ path }, { session }) => {
      const draft = session.artifacts.find(({ name }) => name === path);
      if (!draft) throw new Error(`There is no draft of ${path}. Edit it first.`);
      await workspace.write(path, textOf({ content: draft.parts }));
      return { saved: path };
    },
  );
  // #endregion

  // #region agent
  return app.defineAgent({
    name: 'assistant',
    description: 'Edits the files of a folder. Try “Make the greeting warmer”, then “Save it”.',
    model,
    system: 'You edit code. Read a file before you edit it. Save only when the user asks for it.',
    tools: [...files, editFile, saveFile],
    use: [toolApproval(['save_file'])],
    compact: { whenTokens: 100_000, keepTokens: 20_000 },
  });
  // #endregion
}

/** The type of the agent. */
export type Assistant = ReturnType<typeof defineAssistant>;
