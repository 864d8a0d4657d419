import { spawn } from 'node:child_process';
import { WaymarkError } from '../../core/error.ts';
import { isJsonObject } from '../../core/json/json.ts';
import { defineCommand, flag, option } from '../command.ts';
import { serveChild } from '../dev/serve-child.ts';
import { type Served, type ServeFileOptions, servedText, serveFile } from '../dev/serve-file.ts';
import { childMark, Supervisor } from '../dev/supervise.ts';
import { findAgentsFile, shownPath } from '../source/load-app.ts';
import { isPortInUse, parsePort } from '../source/load-server.ts';
import type { Terminal } from '../terminal.ts';
import { safe } from '../text/format.ts';

/** `waymark dev` */
export const dev = defineCommand({
  name: 'dev',
  summary: 'Serve an app with Studio, and reload on change',
  usage: '[file]',
  about:
    'The file exports `app`, and optionally `modelNote`, a note about the model. Without a file name, it is agents.ts or\nagents.js, here or in src/. Listens on this machine only. Ctrl-C stops the server; unfinished background runs continue\nat the next start.',
  examples: ['dev', 'dev examples/agents.ts --port 4000 --open'],
  options: {
    file: option('path', 'The file that exports the app; same as the argument', { short: 'f' }),
    port: option('number', 'The port to listen on [3000, or a free one]', { short: 'p' }),
    host: option('address', 'A loopback address [127.0.0.1]'),
    open: flag('Open Studio in the browser'),
    reload: flag('Restart when a file changes [on]; --no-reload turns it off'),
    verbose: flag('Log every request'),
  },
  async run({ args, options, terminal }) {
    const path = findAgentsFile(options.file ?? args[0], terminal.cwd);
    const port = options.port === undefined ? undefined : parsePort(options.port, 'dev');
    const serving: ServeFileOptions = {
      path,
      cwd: terminal.cwd,
      host: options.host ?? '127.0.0.1',
      ...(port !== undefined && { port }),
      log: (line) => terminal.note(safe(line)),
      verbose: options.verbose === true,
    };
    const show = (served: Served): void => {
      terminal.print(servedText(served, terminal));
      if (options.open) openBrowser(served.studio ? `${served.url}/studio/` : served.url);
    };
    if (terminal.env[childMark] !== undefined) await serveChild(serving);
    else if (options.reload === false) await serveOnce(serving, show, terminal);
    else await superviseFile(serving, show, terminal, options.debug === true);
  },
});

async function serveOnce(
  serving: ServeFileOptions,
  show: (served: Served) => void,
  terminal: Terminal,
): Promise<void> {
  const interrupted = interruptOf(terminal);
  const file = await serveFile(serving);
  show(file.served);
  await interrupted;
  await file.close();
}

async function superviseFile(
  serving: ServeFileOptions,
  show: (served: Served) => void,
  terminal: Terminal,
  isDebug: boolean,
): Promise<void> {
  const { path, cwd, host, port, verbose } = serving;
  const { style } = terminal;
  const args = ['dev', path, '--host', host];
  const fixed = port === undefined ? [] : ['--port', String(port)];
  // Waiting for a change of a file does not free a port, and does not change an option.
  const unusable = Promise.withResolvers<never>();
  let isFirst = true;
  const supervisor = new Supervisor([...args, ...(verbose ? ['--verbose'] : []), ...fixed], {
    serving(served, isRestart) {
      isFirst = false;
      if (isRestart) terminal.note(style.good('Reloaded.'));
      else show(served);
    },
    failed(body, stack) {
      const { status, message, details } = body;
      const error = new WaymarkError(status, message, details === undefined ? {} : { details });
      if (isFirst && (isPortInUse(error) || isHostRefused(error))) return unusable.reject(error);
      terminal.note(`${style.bad('✗')} ${safe(message)}`);
      if (isDebug && stack !== undefined) terminal.note(stack);
      terminal.note(style.dim('Waiting for a change.'));
    },
    died: (code) =>
      terminal.note(`${style.bad('✗')} The app exited (${code}). Waiting for a change.`),
    changed: (changed) => terminal.note(style.dim(`${shownPath(changed, cwd)} changed.`)),
  });
  const interrupted = interruptOf(terminal);
  supervisor.start(path);
  try {
    await Promise.race([interrupted, unusable.promise]);
  } finally {
    terminal.onInterrupt(() => supervisor.kill());
    await supervisor.close();
  }
}

/** Whether the server refused to listen on an address that other machines reach. */
function isHostRefused({ status, details }: WaymarkError): boolean {
  return status === 'FAILED_PRECONDITION' && isJsonObject(details) && 'host' in details;
}

/** Resolves at the first Ctrl-C. */
function interruptOf(terminal: Terminal): Promise<void> {
  return new Promise((resolve) => {
    const forget = terminal.onInterrupt(() => {
      forget();
      resolve();
    });
  });
}

/** Opens an address in the default browser; does nothing where there is none. */
function openBrowser(url: string): void {
  const [command, ...args] =
    process.platform === 'darwin'
      ? ['open', url]
      : process.platform === 'win32'
        ? ['cmd', '/c', 'start', '', url]
        : ['xdg-open', url];
  if (command === undefined) return;
  const child = spawn(command, args, { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
}
