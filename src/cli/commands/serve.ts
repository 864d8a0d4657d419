import { failedPrecondition } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { isLoopback } from '../../server/http/origin.ts';
import type { ServeOptions } from '../../server/serve.ts';
import { defineCommand, flag, number, option } from '../command.ts';
import { readValue } from '../parse-arguments.ts';
import { loadApp } from '../source/load-app.ts';
import { port, startServer } from '../source/load-server.ts';
import { interrupted } from '../terminal.ts';
import { count } from '../text/format.ts';

export const serve = defineCommand({
  name: 'serve',
  summary: 'Serve an app in production',
  usage: '[file]',
  about:
    'The file exports `app`, and `serverOptions` for the server: `export const serverOptions: ServeOptions = { auth }`.\nWithout `auth`, the server listens on this machine only, because every caller could read all sessions. Logs are JSON\nlines on standard output. On SIGTERM or Ctrl-C the server drains: running turns can finish until the deadline. Unlike\n"waymark dev", it has no Studio and does not reload.',
  examples: ['serve', 'serve agents.ts --host 0.0.0.0 --port 8080', 'serve agents.ts --no-work'],
  options: {
    file: option('path', 'The file that exports the app; same as the argument', { short: 'f' }),
    port: option('number', 'The port to listen on [the PORT environment variable, or 3000]', {
      short: 'p',
      ...port,
    }),
    host: option(
      'address',
      'The address to listen on; any other than 127.0.0.1 requires auth [127.0.0.1]',
    ),
    drain: number('ms', 'How long running turns may take to finish [10000]'),
    work: flag('Also process background runs [on]; --no-work leaves them to "waymark worker"'),
  },
  async run({ args, options, terminal }) {
    const { host, drain: grace = 10_000, work = true } = options;
    const { PORT } = terminal.env;
    const given = options.port ?? (PORT ? readValue('PORT', port, PORT) : undefined);
    const stopped = interrupted(terminal);
    const { app, shown, serverOptions } = await loadApp(
      options.file ?? args[0],
      terminal.cwd,
      work ? 'running' : 'reading',
    );
    try {
      const serving: ServeOptions = { ...serverOptions, ...defined({ host, port: given }), grace };
      checkAuth(serving, shown);
      const server = await startServer(app, serving);
      terminal.note(
        `Serving ${count(app.agents().length, 'agent')} of ${shown} at ${server.url}. Press Ctrl-C to drain and stop.`,
      );
      if (serving.auth === undefined) terminal.note(withoutAuth);
      await stopped;
      terminal.note('Draining …');
      await server.close();
    } finally {
      await app.close({ grace });
    }
  },
});

const withoutAuth =
  'There is no authentication: only this machine can connect, and all callers share all sessions. To accept other machines, export `serverOptions` with `auth`; see docs/serving-and-auth.md.';

function checkAuth({ auth, host = '127.0.0.1' }: ServeOptions, shown: string): void {
  if (auth !== undefined && typeof auth !== 'function') {
    throw failedPrecondition(
      `\`serverOptions.auth\` in ${shown} is not a function. Expected (request) => ({ principal }) or undefined.`,
    );
  }
  if (auth !== undefined || isLoopback(host)) return;
  throw failedPrecondition(
    `Listening on ${host} lets other machines connect, so it needs authentication. Export it from ${shown}: \`export const serverOptions = { auth: (request) => … }\`. To serve this machine only, leave out --host.`,
  );
}
