import { createWriteStream } from 'node:fs';
import { resolve } from 'node:path';
import { finished } from 'node:stream/promises';
import { WaymarkError } from '../../core/error.ts';
import type { Scope, SessionExport } from '../../store/contract/store.ts';
import { defineCommand } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { allPages } from '../source/all-pages.ts';
import {
  agentsOf,
  type OpenStore,
  openStore,
  scopeOptions,
  storeOptions,
} from '../source/open-store.ts';

/** `waymark export` */
export const exportCommand = defineCommand({
  name: 'export',
  summary: 'Write sessions out, each as one JSON document',
  usage: '[session]',
  about:
    'A document holds the whole tree of a session; messages, states and artifacts stand in it once. There is one\ndocument a line, so that "waymark import" can read any number of them.',
  examples: ['export 019b2f6e-… --out session.json', 'export --all --out sessions.jsonl'],
  options: {
    all: { type: 'boolean', about: 'Every session' },
    out: {
      type: 'string',
      short: 'o',
      value: 'file',
      about: 'The file to write [standard output]',
    },
    ...scopeOptions,
    ...storeOptions,
  },
  async run({ args, options, terminal }) {
    const [sessionId] = args;
    if ((sessionId === undefined) === (options.all !== true)) {
      throw usageError('Name a session, or give --all.', 'export');
    }
    const open = await openStore(options, terminal);
    const file =
      options.out === undefined ? undefined : createWriteStream(resolve(terminal.cwd, options.out));
    try {
      let written = 0;
      const write = (document: SessionExport): void => {
        const line = `${JSON.stringify(document)}\n`;
        if (file) file.write(line);
        else terminal.write(line);
        terminal.progress(`Exported ${++written} …`);
      };
      for (const scope of scopesOf(options, open)) {
        for (const id of sessionId === undefined ? await sessionsOf(open, scope) : [sessionId]) {
          const document = await open.maintenance.exportSession(scope, id);
          if (document) write(document);
        }
      }
      if (sessionId !== undefined && written === 0) {
        throw new WaymarkError('NOT_FOUND', `There is no session "${sessionId}".`);
      }
      if (file) {
        file.end();
        await finished(file);
        terminal.note(
          `Wrote ${written} ${written === 1 ? 'session' : 'sessions'} to ${options.out}.`,
        );
      }
    } finally {
      file?.destroy();
      await open.close();
    }
  },
});

function scopesOf(
  options: { readonly agent?: string; readonly owner?: string },
  open: OpenStore,
): Scope[] {
  const { owner } = options;
  return agentsOf(options, open).map((agent) => ({ agent, ...(owner !== undefined && { owner }) }));
}

async function sessionsOf({ timeline }: OpenStore, scope: Scope): Promise<string[]> {
  const sessions = await allPages((cursor) =>
    timeline.listSessions(scope, { limit: 200, ...(cursor !== undefined && { cursor }) }),
  );
  return sessions.map(({ sessionId }) => sessionId);
}
