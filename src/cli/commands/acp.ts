import { Readable } from 'node:stream';
import { loadSdk } from '../../acp/sdk.ts';
import type { Agent } from '../../agent/contract/agent.ts';
import { reportText } from '../../agent/contract/error-reports.ts';
import type { App } from '../../app.ts';
import { failedPrecondition } from '../../core/error.ts';
import { hasStore } from '../../server/http/served-app.ts';
import { defineCommand, number, option } from '../command.ts';
import { ownOutput } from '../own-output.ts';
import { version } from '../package-root.ts';
import { loadApp } from '../source/load-app.ts';

/** The longest message of an editor. */
const maxMessageBytes = 32 * 2 ** 20;

export const acp = defineCommand({
  name: 'acp',
  summary: 'Serve an agent to an editor over the Agent Client Protocol',
  usage: '[file]',
  about:
    'Editors such as Zed, JetBrains IDEs and Neovim start this command and talk to it over standard input and output. The\nfolder that is open in the editor is `context.cwd` for an agent whose `workspace` is a function. The log, and everything\nthat agents print, goes to standard error. It needs the packages @agentclientprotocol/sdk and zod.',
  examples: ['acp agents.ts', 'acp agents.ts --agent coder --context-window 200000'],
  options: {
    agent: option('name', 'The agent to serve [the only one with a store]', { short: 'a' }),
    owner: option('id', 'The owner of the sessions [none]'),
    'context-window': number(
      'tokens',
      'The size of the context of its model, so that the editor can show how much is used',
      { least: 1 },
    ),
  },
  async run({ args, options, terminal }) {
    const { input, output, cwd, onInterrupt } = terminal;
    const { write, release } = ownOutput(output);
    const stopping = new AbortController();
    const unsubscribe = onInterrupt(() => stopping.abort());
    const { app } = await loadApp(args[0], cwd, 'running');
    app.subscribeToErrors((error, info) => terminal.note(reportText(error, info)));
    try {
      const agent = chosen(app, options.agent);
      const { ndJsonStream } = await loadSdk();
      const { serveAcp } = await import('../../server/acp/serve.ts');
      const stream = ndJsonStream(
        new WritableStream({ write }),
        Readable.toWeb(input) as ReadableStream<Uint8Array>,
        { maxMessageBytes },
      );
      await serveAcp({
        agent,
        owner: options.owner,
        models: modelsOf(app),
        contextWindow: options['context-window'],
        version: version(),
        stream,
        signal: stopping.signal,
      });
    } finally {
      unsubscribe();
      await app.close({ grace: 5000 });
      release();
    }
  },
});

function chosen(app: App, name: string | undefined): Agent {
  const kept = app.agents().filter(hasStore);
  const names = kept.map((each) => each.name).join(', ');
  const found = name === undefined ? kept : kept.filter((each) => each.name === name);
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (name !== undefined) {
    throw failedPrecondition(
      `There is no agent "${name}" with a store. ${names === '' ? 'Give the app a `store`.' : `There are ${names}.`}`,
    );
  }
  throw failedPrecondition(
    names === ''
      ? 'No agent has a store, and an editor needs sessions. Give the app a `store`.'
      : `There are several agents: ${names}. Choose one with --agent.`,
  );
}

/** The models that were defined by name. */
function modelsOf({ registry }: App): readonly string[] {
  return registry.list().flatMap(({ key }) => /^\/model\/(.+)$/.exec(key)?.[1] ?? []);
}
