import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type App, type ModelRequest, type Store, tool, waymark } from 'waymark';
import { type ScriptedReply, scriptedModel } from 'waymark/testing';
import { z } from 'zod';

/** What is in a folder, read without any of our code: content, modes, links and empty folders by path. */
export function hashFolder(folder: string, prefix = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(folder, prefix)).sort()) {
    if (prefix === '' && (name === '.waymark' || name === '.git')) continue;
    const path = prefix + name;
    const full = join(folder, path);
    const stats = lstatSync(full);
    if (stats.isSymbolicLink()) found[path] = `link ${readlinkSync(full)}`;
    else if (stats.isDirectory()) {
      const inner = hashFolder(folder, `${path}/`);
      if (Object.keys(inner).length === 0) found[`${path}/`] = 'empty';
      Object.assign(found, inner);
    } else {
      const hash = createHash('sha256').update(readFileSync(full)).digest('hex');
      found[path] = `${(stats.mode & 0o100) === 0 ? 'file' : 'executable'} ${hash}`;
    }
  }
  return found;
}

/** A temporary folder that is removed at the end of a test. */
export function testFolder(): Disposable & { readonly path: string; readonly project: string } {
  const path = mkdtempSync(join(tmpdir(), 'waymark-files-'));
  const project = join(path, 'project');
  mkdirSync(project);
  return {
    path,
    project,
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Runs a shell command in a folder. */
export function shell(cwd: string, command: string): string {
  return execFileSync('sh', ['-c', command], { cwd, encoding: 'utf8' });
}

/** A tool that runs what a person, or a program, could do in the folder. */
export const act = tool(
  { name: 'act', description: 'Does something.', input: z.object({ command: z.string() }) },
  async ({ command }, { workspace }) => {
    const path = workspace?.path;
    if (path === undefined) throw new Error('There is no folder.');
    return shell(path, command) || 'done';
  },
);

/** The text of the user is a command for {@link act}; each part after `;;` is another call. */
function reply({ messages }: ModelRequest): ScriptedReply {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const asked =
    messages[at]?.content.map((part) => ('text' in part ? part.text : '')).join('') ?? '';
  const done = messages.slice(at).filter(({ role }) => role === 'tool').length;
  const command = asked.split(';;')[done];
  if (command === undefined || asked === 'nothing') return 'ok';
  return { toolCalls: [{ name: 'act', input: { command } }] };
}

const commands = scriptedModel({ patterns: [], otherwise: reply, afterTools: reply });

export function openApp(store: Store): App & AsyncDisposable & { readonly errors: unknown[] } {
  const errors: unknown[] = [];
  const app = waymark({ store, model: commands, onError: (error) => errors.push(error) });
  return Object.assign(app, { errors, [Symbol.asyncDispose]: () => app.close({ grace: 1_000 }) });
}
