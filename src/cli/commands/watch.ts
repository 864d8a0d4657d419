import type { WatchEvent } from '../../api/types.ts';
import type { Chunk } from '../../protocol/turn.ts';
import { option } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { AgentAccess } from '../source/agent-access.ts';
import { findSnapshot } from '../source/find.ts';
import { agentsCommand } from '../source/open-agents.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine } from '../text/format.ts';
import { ChunkPrinter } from '../text/message-text.ts';

/** `waymark watch` */
export const watch = agentsCommand({
  name: 'watch',
  summary: 'Follow a run to its end',
  usage: '<run>',
  about:
    'Prints past and live events of a turn or a background run. Ctrl-C stops watching; the run continues. With --json, one\nevent per line. Exits with 0 when the run succeeded, otherwise with 1.',
  examples: ['watch 019b2f6e-… --url http://127.0.0.1:3000', 'watch 019b2f6e-… --after 1.42'],
  options: { after: option('event', 'Continue after this event, such as 1.42') },
  use: 'running',
  async run({ args: [given = ''], options, terminal, agents, sourceArguments }) {
    const over = new AbortController();
    const forget = terminal.onInterrupt(() => over.abort());
    try {
      const { agent, snapshot } = await findSnapshot(agents, given, options.agent);
      const { snapshotId } = snapshot;
      const seen = await follow(agent, snapshotId, {
        terminal,
        json: options.json === true,
        signal: over.signal,
        after: options.after,
      });
      if (seen.end !== undefined) return seen.end ? exitCode.ok : exitCode.failed;
      const after = seen.last === undefined ? '' : ` --after ${seen.last}`;
      terminal.note(
        `The run continues. To watch it again: waymark watch ${snapshotId}${after}${sourceArguments}`,
      );
      return exitCode.interrupted;
    } finally {
      forget();
    }
  },
});

/** The last event that was read, and whether the run succeeded if it ended. */
interface Followed {
  readonly last: string | undefined;
  readonly end: boolean | undefined;
}

async function follow(
  agent: AgentAccess,
  snapshotId: string,
  options: {
    readonly terminal: Terminal;
    readonly json: boolean;
    readonly signal: AbortSignal;
    readonly after: string | undefined;
  },
): Promise<Followed> {
  const { terminal, json, signal, after } = options;
  const printer = new ChunkPrinter(terminal);
  let last = after;
  let end: boolean | undefined;
  try {
    const events = agent.watch(snapshotId, { signal, ...(after !== undefined && { after }) });
    for await (const event of events) {
      if (event.type === 'end') end = event.snapshot.status === 'succeeded';
      else last = event.id;
      if (json) terminal.print(JSON.stringify(event));
      else show(event, printer, terminal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  printer.end();
  return { last, end };
}

function show(event: WatchEvent, printer: ChunkPrinter, { style }: Terminal): void {
  if (event.type === 'chunk') printer.print(event.chunk as Chunk);
  else if (event.type === 'reset') {
    printer.line(style.warn(`↻ taken over by another process (attempt ${event.attempt})`));
  } else {
    const { status, finishReason, error } = event.snapshot;
    const how = [status, finishReason].filter(Boolean).join(', ');
    const why = error ? `: ${oneLine(error.message, 200)}` : '';
    printer.line(status === 'succeeded' ? style.good(`● ${how}`) : style.bad(`✗ ${how}${why}`));
  }
}
