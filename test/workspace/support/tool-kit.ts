import type { Json } from '../../../src/core/json/json.ts';
import { runToolOnce } from '../../../src/generate/tool/run-tool-once.ts';
import {
  type WorkspaceFolder,
  type WorkspaceToolsOptions,
  workspaceTools,
} from '../../../src/workspace/index.ts';

/** Calls a tool of a workspace as a turn does. */
export async function callTool(
  workspace: WorkspaceFolder | undefined,
  name: string,
  input: object,
  {
    signal = new AbortController().signal,
    ...options
  }: WorkspaceToolsOptions & { readonly signal?: AbortSignal } = {},
): Promise<Json> {
  const tools = await workspaceTools(options).list({ context: {}, signal, report() {} });
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) throw new Error(`There is no tool "${name}".`);
  const attempt = await runToolOnce(tool, input, { ref: '1', signal, extras: { workspace } });
  return 'output' in attempt ? attempt.output : { interrupted: attempt.interrupted };
}
