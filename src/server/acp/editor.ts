import { join } from 'node:path';
import type { AgentContext, ClientCapabilities } from '@agentclientprotocol/sdk';
import { abortError } from '../../core/async/signal.ts';
import { failedPrecondition } from '../../core/error.ts';
import { bytesOf } from '../../workspace/contract/content.ts';
import type {
  ExecuteOptions,
  ExecuteResult,
  WorkspaceFolder,
} from '../../workspace/contract/contract.ts';

/** Larger files are not in the buffer of an editor. */
const maxBufferBytes = 4 * 2 ** 20;

export interface Editor {
  readonly client: AgentContext;
  readonly capabilities: ClientCapabilities;
  readonly sessionId: string;
  /** Paths whose unsaved text differs from the disk. */
  readonly unsaved: Set<string>;
  readonly onFolder: (path: string) => void;
  readonly onChange: (path: string, before: string | null, after: string) => Promise<void>;
  readonly onTerminal: (command: string, terminalId: string) => Promise<void>;
}

/**
 * A folder whose tools see what the editor shows. A read returns unsaved text. A write goes to the disk, where it happens as a whole, and then to the
 * editor; a file with unsaved text is not overwritten. Commands run in a terminal of the editor.
 */
export function editedFolder(folder: WorkspaceFolder, editor: Editor): WorkspaceFolder {
  const { path } = folder;
  if (path === undefined) return folder;
  editor.onFolder(path);
  const { capabilities } = editor;
  const { readTextFile = false, writeTextFile = false } = capabilities.fs ?? {};
  return {
    id: folder.id,
    path,
    lock: (owner, options) => folder.lock(owner, options),
    scan: (options) => folder.scan(options),
    async *read(file, options) {
      // The hash names a content of the disk.
      const isDisk = !readTextFile || options?.hash !== undefined;
      const text = isDisk ? undefined : await unsavedText(folder, file, editor);
      if (text === undefined) yield* folder.read(file, options);
      else yield new TextEncoder().encode(text);
    },
    async apply(changes, options) {
      for (const change of readTextFile ? changes : []) {
        if ((await unsavedText(folder, change.path, editor)) === undefined) continue;
        throw failedPrecondition(
          `${JSON.stringify(change.path)} has unsaved changes in the editor. Ask the user to save or discard them.`,
        );
      }
      const texts = new Map<string, string | null>();
      for (const { path: file, before } of changes) {
        if (before?.type === 'file') texts.set(file, (await savedText(folder, file)) ?? null);
      }
      const skipped = await folder.apply(changes, options);
      for (const { path: file, after } of changes) {
        if (after?.type !== 'file' || after.size > maxBufferBytes) continue;
        const content = decode(await bytesOf(options.content(after, file)));
        if (content === undefined) continue;
        if (writeTextFile) await write(editor, join(path, file), content);
        await editor.onChange(join(path, file), texts.get(file) ?? null, content);
      }
      return skipped;
    },
    ...(folder.execute && {
      execute: (command: string, options: ExecuteOptions) =>
        capabilities.terminal === true
          ? executeInTerminal(command, path, { ...options, editor })
          : (folder.execute as NonNullable<WorkspaceFolder['execute']>)(command, options),
    }),
  };
}

/** The text of a file in the editor, if it differs from the disk. */
async function unsavedText(
  folder: WorkspaceFolder,
  file: string,
  { client, sessionId, unsaved }: Editor,
): Promise<string | undefined> {
  let shown: string;
  try {
    const path = join(folder.path ?? '', file);
    shown = (await client.request('fs/read_text_file', { sessionId, path })).content;
  } catch {
    // Binary, missing, or not allowed: what the disk has is said by the disk.
    return undefined;
  }
  const saved = await savedText(folder, file);
  // Editors show files without a byte order mark, and may show other ends of lines.
  const plain = (text: string): string => text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n');
  if (saved === undefined || plain(saved) === plain(shown)) {
    unsaved.delete(file);
    return undefined;
  }
  unsaved.add(file);
  return shown;
}

async function savedText(folder: WorkspaceFolder, file: string): Promise<string | undefined> {
  return await bytesOf(folder.read(file), maxBufferBytes).then(decode, () => undefined);
}

async function write({ client, sessionId }: Editor, path: string, content: string): Promise<void> {
  try {
    await client.request('fs/write_text_file', { sessionId, path, content });
  } catch {
    // The disk has it, and editors watch the disk.
  }
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

async function executeInTerminal(
  command: string,
  cwd: string,
  {
    editor,
    signal,
    timeoutMs,
    maxOutputBytes,
    env = {},
  }: ExecuteOptions & { readonly editor: Editor },
): Promise<ExecuteResult> {
  const isWindows = process.platform === 'win32';
  const terminal = await editor.client.createTerminal({
    sessionId: editor.sessionId,
    command: isWindows ? 'cmd' : '/bin/sh',
    args: [isWindows ? '/c' : '-c', command],
    cwd,
    outputByteLimit: maxOutputBytes,
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
  });
  let timedOut = false;
  const stop = (): void => void terminal.kill().catch(() => {});
  const timer = setTimeout(() => {
    timedOut = true;
    stop();
  }, timeoutMs);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    await editor.onTerminal(command, terminal.id);
    const { exitCode = null } = await terminal.waitForExit();
    const { output, truncated } = await terminal.currentOutput();
    if (signal.aborted) throw abortError(signal);
    return { exitCode: exitCode ?? null, output, timedOut, cut: truncated ? 1 : 0 };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    await terminal.release().catch(() => {});
  }
}
