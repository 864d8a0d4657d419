import { defineCommand } from '../command.ts';
import { childMark } from '../dev/child-message.ts';
import { openBrowser } from '../dev/open-browser.ts';
import { servedText } from '../dev/screen.ts';
import { serveChild } from '../dev/serve-child.ts';
import { type Served, type ServeFileOptions, serveFile } from '../dev/serve-file.ts';
import { Supervisor } from '../dev/supervise.ts';
import { usageError, wholeNumber } from '../parse-arguments.ts';
import { findAgentsFile, shownPath } from '../source/find-file.ts';
import type { Terminal } from '../terminal.ts';
import { safe } from '../text/safe.ts';

/** `waymark dev` */
export const dev = defineCommand({
  name: 'dev',
  summary: 'Serve a file of agents, with the studio, and reload on change',
  usage: '[file]',
  about:
    'The file exports `app` (agents.ts, agents.js or one of these in src/ when none is named), and `modelNote` if there\nis something to say about the model. Listens on this machine only. Ctrl-C ends it; unfinished background runs\ngo on at the next start.',
  examples: ['dev', 'dev examples/agents.ts --port 4000 --open'],
  options: {
    port: {
      type: 'string',
      short: 'p',
      value: 'number',
      about: 'Where to listen [3000, or any free one]',
    },
    host: { type: 'string', value: 'address', about: 'A loopback address [127.0.0.1]' },
    open: { type: 'boolean', about: 'Open the studio in the browser' },
    reload: { type: 'boolean', about: 'Start anew when a file changes; --no-reload does not' },
    verbose: { type: 'boolean', about: 'Log every request' },
  },
  async run({ args, options, terminal }) {
    const path = findAgentsFile(args[0], terminal.cwd);
    const port = options.port === undefined ? undefined : wholeNumber(options.port, 'port');
    if (port !== undefined && port > 65_535) throw usageError('--port takes at most 65535.', 'dev');
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
  const supervisor = new Supervisor([...args, ...(verbose ? ['--verbose'] : []), ...fixed], {
    serving(served, isRestart) {
      if (isRestart) terminal.note(style.good('Reloaded.'));
      else show(served);
    },
    failed({ message }, stack) {
      terminal.note(`${style.bad('✗')} ${safe(message)}`);
      if (isDebug && stack !== undefined) terminal.note(stack);
      terminal.note(style.dim('Waiting for a change.'));
    },
    died: (code) =>
      terminal.note(`${style.bad('✗')} The app ended by itself (${code}). Waiting for a change.`),
    changed: (changed) => terminal.note(style.dim(`${shownPath(changed, cwd)} changed.`)),
  });
  const interrupted = interruptOf(terminal);
  supervisor.start(path);
  await interrupted;
  terminal.onInterrupt(() => supervisor.kill());
  await supervisor.close();
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
