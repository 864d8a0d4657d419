import { checkOptions } from '../core/options.ts';
import type { Tool } from '../generate/tool/tool.ts';
import type { ToolSource } from '../generate/tool/tool-source.ts';
import { editTool, listTool, readTool, writeTool } from './file-tools.ts';
import { searchTool } from './search-tool.ts';
import { shellTool, type WorkspaceToolsOptions } from './shell-tool.ts';

/**
 * The tools `read`, `write`, `edit`, `list` and `search` for the files of an agent's workspace, and `shell` if you allow it. Paths outside
 * of the workspace are refused, also through links.
 *
 * @example
 * const coder = app.defineAgent({ name: 'coder', workspace: directory('.'), tools: [workspaceTools({ shell: 'ask' })] });
 */
export function workspaceTools(options: WorkspaceToolsOptions = {}): ToolSource {
  checkOptions(
    options,
    { shell: true, timeout: 'number', maxOutputBytes: 'number', env: 'object' },
    'workspaceTools()',
  );
  const { shell = false } = options;
  const tools = [readTool, writeTool, editTool, listTool, searchTool] as readonly Tool[];
  const all = shell === false ? tools : [...tools, shellTool({ ...options, shell })];
  return { name: 'workspace', isShared: true, list: async () => all };
}
