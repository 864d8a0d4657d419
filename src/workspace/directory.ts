import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { codeOf, invalid } from '../core/error.ts';
import { defined } from '../core/json/json.ts';
import { checkOptions, type OptionNames } from '../core/options.ts';
import type { Workspace, WorkspaceFolder, WorkspaceSession } from './contract/contract.ts';
import { checkEmpty, createFolder } from './create-folder.ts';
import { type FolderSettings, openFolder } from './open-folder.ts';
import { defaultLimits, type ScanLimits } from './scan-run.ts';

/** Options of {@link directory}. */
export interface DirectoryOptions {
  /** The name for errors. @default the last part of the path */
  readonly name?: string;
  /** Larger files are not stored, and are listed as skipped. @default 104_857_600 (100 MiB) */
  readonly maxFileBytes?: number;
  /** RESOURCE_EXHAUSTED above this number of files. @default 100_000 */
  readonly maxFiles?: number;
  /** RESOURCE_EXHAUSTED above this total size. @default 4_294_967_296 (4 GiB) */
  readonly maxBytes?: number;
}

/** Options of `directory.perSession`. */
export interface PerSessionOptions extends DirectoryOptions {
  /** The folder that holds the sessions' folders. */
  readonly in: string;
  /** A folder whose content a new session begins with. @default none: it begins empty */
  readonly from?: string;
}

const limitNames: OptionNames<DirectoryOptions> = {
  name: 'text',
  maxFileBytes: 'number',
  maxFiles: 'number',
  maxBytes: 'number',
};

/**
 * A folder on this machine as a workspace, which all sessions of an agent share. It respects `.gitignore` files, never touches `.git`,
 * and keeps its own data in the folder `.waymark`.
 *
 * @example
 * const project = directory('./project');
 * const coder = app.defineAgent({ name: 'coder', workspace: project, tools: [workspaceTools()] });
 */
export function directory(path: string, options: DirectoryOptions = {}): Workspace {
  checkOptions(options, limitNames, 'directory()');
  const root = resolve(path);
  return fromFolders({ ...options, isPerSession: false, pathOf: () => root, base: path });
}

/**
 * A folder for each session, created from the snapshot it starts from, or from a template.
 *
 * @example
 * const sites = directory.perSession({ from: './template', in: './workspaces' });
 */
directory.perSession = (options: PerSessionOptions): Workspace => {
  const names = { ...limitNames, in: 'text', from: 'text' } as const;
  checkOptions(options, names, 'directory.perSession()');
  const { in: parent, from, ...rest } = options;
  const folder = resolve(parent);
  return fromFolders({
    ...rest,
    isPerSession: true,
    base: parent,
    pathOf: (session) => join(folder, folderName(session)),
    template: from === undefined ? undefined : resolve(from),
  });
};

/** The number of folders whose last scan is kept in memory. */
const maxOpen = 64;

function fromFolders({
  pathOf,
  isPerSession,
  template,
  base,
  name = basename(resolve(base)) || 'workspace',
  ...options
}: DirectoryOptions & {
  readonly isPerSession: boolean;
  readonly base: string;
  readonly template?: string | undefined;
  pathOf(session: WorkspaceSession): string;
}): Workspace {
  const limits = limitsOf(options);
  const opened = new Map<string, Promise<WorkspaceFolder>>();

  const openOnce = (path: string, settings: FolderSettings): Promise<WorkspaceFolder> => {
    const key = JSON.stringify([path, settings.exclude]);
    const folder = opened.get(key) ?? openFolder(path, settings);
    // The most recently used one is the last.
    opened.delete(key);
    opened.set(key, folder);
    const [oldest] = opened.keys();
    if (opened.size > maxOpen && oldest !== undefined) opened.delete(oldest);
    folder.catch(() => opened.delete(key));
    return folder;
  };

  return {
    name,
    isPerSession,
    async open(session) {
      const path = pathOf(session);
      const settings = { workspace: name, limits, exclude: session.exclude ?? [] };
      if (isPerSession && !(await exists(path))) {
        for (const key of opened.keys())
          if (key.startsWith(`[${JSON.stringify(path)},`)) opened.delete(key);
        await create(path, { session, settings });
      }
      return await openOnce(path, settings);
    },
    async checkout(path, source) {
      const target = resolve(path);
      await checkEmpty(target, name);
      const settings = { workspace: name, limits, exclude: [] };
      return await createFolder(target, {
        workspace: name,
        source,
        open: (each) => openFolder(each, settings),
      });
    },
  };

  async function create(
    path: string,
    {
      session,
      settings,
    }: { readonly session: WorkspaceSession; readonly settings: FolderSettings },
  ): Promise<void> {
    const source = await session.start?.();
    const open = (each: string): Promise<WorkspaceFolder> => openFolder(each, settings);
    await createFolder(path, { workspace: name, template, source, open }).catch(
      async (error: unknown) => {
        // Another process may have been faster.
        if (!(await exists(path))) throw error;
      },
    );
  }
}

function limitsOf(options: Partial<ScanLimits>): ScanLimits {
  const limits = { ...defaultLimits, ...defined(options) };
  for (const [option, value] of Object.entries(limits)) {
    if (value > 0) continue;
    throw invalid(`\`${option}\` of a workspace must be a positive number, not ${value}.`);
  }
  return limits;
}

async function exists(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Two owners or agents may choose the same id for a session, and an id may be no name of a folder. */
function folderName({ agent, owner, sessionId }: WorkspaceSession): string {
  const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(sessionId);
  if (isUuid && owner === undefined) return sessionId;
  const key = JSON.stringify([agent, owner ?? null, sessionId]);
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 16);
  return `${sessionId.replace(/[^\w-]/g, '_').slice(0, 60)}-${hash}`;
}
