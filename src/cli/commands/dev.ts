import { spawn } from 'node:child_process';
import { WaymarkError } from '../../core/error.ts';
import { defined, isJsonObject } from '../../core/json/json.ts';
import { defineCommand, flag, option } from '../command.ts';
import { serveChild } from '../dev/serve-child.ts';
import { type Served, type ServeFileOptions, servedText, serveFile } from '../dev/serve-file.ts';
import { childMark, supervise } from '../dev/supervise.ts';
import { findAgentsFile, shownPath } from '../source/load-app.ts';
import { isPortInUse, port } from '../source/load-server.ts';
import { interrupted, type Terminal } from '../terminal.ts';
import { safe } from '../text/format.ts';

export const dev = defineCommand({
  name: 'dev',
  summary: 'Serve an app with Studio, and reload on change',
  usage: '[file]',
  about:
    'The file exports `app`, and optionally `modelNote`, a note about the model. Without a file name, it is agents.ts or\nagents.js, here or in src/. Listens on this machine only. Ctrl-C stops the server; unfinished background runs continue\nat the next start.',
  examples: ['dev', 'dev examples/agents.ts --port 4000 --open'],
  options: {
    file: option('path', 'The file that exports the app; same as the argument', { short: 'f' }),
    port: option('number', 'The port to listen on [3000, or a free one]', { short: 'p', ...port }),
    host: option('address', 'A loopback address [127.0.0.1]'),
    open: flag('Open Studio in the browser'),
    reload: flag('Restart when a file changes [on]; --no-reload turns it off'),
    verbose: flag('Log every request'),
  },
  async run({ args, options, terminal }) {
    const { host = '127.0.0.1', verbose = false, debug = false } = options;
    const { cwd, env, note, print } = terminal;
    const path = findAgentsFile(options.file ?? args[0], cwd);
    const log = (line: string): void => note(safe(line));
    const serving: ServeFileOptions = { path, cwd, host, port: options.port, log, verbose };
    const show = (served: Served): void => {
      print(servedText(served, terminal));
      if (options.open) openBrowser(served.studio ? `${served.url}/studio/` : served.url);
    };
    if (env[childMark] !== undefined) await serveChild(serving);
    else if (options.reload === false) {
      const ended = interrupted(terminal);
      const file = await serveFile(serving);
      show(file.served);
      await ended;
      await file.close();
    } else await superviseFile(serving, show, terminal, debug);
  },
});

async function superviseFile(
  { path, cwd, host, port, verbose }: ServeFileOptions,
  show: (served: Served) => void,
  terminal: Terminal,
  isDebug: boolean,
): Promise<void> {
  const { note, style } = terminal;
  const args = ['dev', path, '--host', host];
  if (verbose) args.push('--verbose');
  if (port !== undefined) args.push('--port', String(port));
  // Waiting for a change of a file does not free a port, and does not change an option.
  const unusable = Promise.withResolvers<never>();
  let isFirst = true;
  const ended = interrupted(terminal);
  const supervisor = supervise(path, args, {
    serving(served, isRestart) {
      isFirst = false;
      if (isRestart) note(style.good('Reloaded.'));
      else show(served);
    },
    failed({ status, message, details }, stack) {
      const error = new WaymarkError(status, message, defined({ details }));
      if (isFirst && (isPortInUse(error) || isHostRefused(error))) return unusable.reject(error);
      note(`${style.bad('✗')} ${safe(message)}`);
      if (isDebug && stack !== undefined) note(stack);
      note(style.dim('Waiting for a change.'));
    },
    died: (code) => note(`${style.bad('✗')} The app exited (${code}). Waiting for a change.`),
    changed: (changed) => note(style.dim(`${shownPath(changed, cwd)} changed.`)),
  });
  try {
    await Promise.race([ended, unusable.promise]);
  } finally {
    terminal.onInterrupt(() => supervisor.kill());
    await supervisor.close();
  }
}

/** Whether the server refused to listen on an address that other machines reach. */
function isHostRefused({ status, details }: WaymarkError): boolean {
  return status === 'FAILED_PRECONDITION' && isJsonObject(details) && 'host' in details;
}

const openers: Partial<Record<string, readonly [command: string, ...args: string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/** Opens an address in the default browser; does nothing where there is none. */
function openBrowser(url: string): void {
  const [command, ...args] = openers[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
}
