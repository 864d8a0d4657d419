import { failedPrecondition, invalid } from '../core/error.ts';
import { type Tool, tool } from '../generate/tool/tool.ts';
import type { ToolContext } from '../generate/tool/tool-context.ts';
import { loadedSkills } from '../protocol/loaded-skills.ts';
import type { Message } from '../protocol/message.ts';
import { workspaceOf } from './file-tools.ts';

/** Options of `workspaceTools`. */
export interface WorkspaceToolsOptions {
  /**
   * Whether there is a shell: `true`, or `'ask'` so that a person approves each command. In a session that has loaded a skill of an
   * MCP server, a person approves each command in any case. @default false
   */
  readonly shell?: 'ask' | boolean;
  /** The longest time of one command, in milliseconds. @default 120_000 */
  readonly timeout?: number;
  /** The longest output of one command; the middle of a longer one is cut. @default 32_768 */
  readonly maxOutputBytes?: number;
  /** Environment variables of commands. Others of this process are passed on only if commands need them, such as `PATH`. */
  readonly env?: Readonly<Record<string, string>>;
}

interface SkillContext {
  /** The folders of the agent's skills, as environment variables. */
  readonly skillFolders?: () => Promise<Readonly<Record<string, string>>>;
}

/** The tool that runs commands. */
export function shellTool({
  shell,
  timeout = 120_000,
  maxOutputBytes = 32 * 1024,
  env = {},
}: WorkspaceToolsOptions): Tool {
  if (shell !== true && shell !== 'ask') {
    throw invalid("`shell` of workspaceTools() must be true, false or 'ask'.");
  }
  if (!(timeout > 0 && maxOutputBytes > 0)) {
    throw invalid('`timeout` and `maxOutputBytes` of workspaceTools() must be positive numbers.');
  }
  return tool(
    {
      name: 'shell',
      effect: 'workspace',
      description: `Runs a shell command in the workspace. It ends after ${timeout / 1000} seconds, and so does what it leaves in the background.`,
      input: {
        type: 'object',
        properties: { command: { type: 'string', minLength: 1 } },
        required: ['command'],
        additionalProperties: false,
      },
      needsApproval: shell === 'ask' || ((_, context) => hasForeignSkill(context)),
    },
    async (input, context) => {
      const { command } = input as { readonly command: string };
      const folder = workspaceOf(context);
      if (folder.execute === undefined) {
        throw failedPrecondition('No commands can be run in this workspace.');
      }
      const { signal } = context;
      const folders = await (context as SkillContext).skillFolders?.();
      const limits = { signal, timeoutMs: timeout, maxOutputBytes, env: { ...folders, ...env } };
      const { exitCode, output, timedOut } = await folder.execute(command, limits);
      return { exitCode, output, ...(timedOut && { timedOut }) };
    },
  ) as Tool;
}

// The instructions of another system may want commands to run; whatever the option says, a person then decides.
function hasForeignSkill(context: ToolContext): boolean {
  const { session } = context as { readonly session?: { readonly messages: readonly Message[] } };
  if (session === undefined) return false;
  return [...loadedSkills(session.messages).values()].some(({ origin }) => origin !== undefined);
}
