import type { WatchEvent } from '../../api/types.ts';
import { defined } from '../../core/json/json.ts';
import type { Chunk } from '../../protocol/turn.ts';
import { option } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { findSnapshot } from '../source/find.ts';
import { agentsCommand } from '../source/open-agents.ts';
import { stoppable, type Terminal } from '../terminal.ts';
import { oneLine } from '../text/format.ts';
import { ChunkPrinter } from '../text/message-text.ts';

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
    const { after, json } = options;
    const printer = new ChunkPrinter(terminal);
    let last = after;
    return await stoppable(terminal, async (signal) => {
      const { agent, snapshot } = await findSnapshot(agents, given);
      const { snapshotId } = snapshot;
      let succeeded: boolean | undefined;
      try {
        for await (const event of agent.watch(snapshotId, { signal, ...defined({ after }) })) {
          if (event.type === 'end') succeeded = event.snapshot.status === 'succeeded';
          else last = event.id;
          if (json) terminal.print(JSON.stringify(event));
          else show(event, printer, terminal);
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
      printer.end();
      if (succeeded !== undefined) return succeeded ? exitCode.ok : exitCode.failed;
      const more = last === undefined ? '' : ` --after ${last}`;
      terminal.note(
        `The run continues. To watch it again: waymark watch ${snapshotId}${more}${sourceArguments}`,
      );
      return exitCode.interrupted;
    });
  },
});

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
