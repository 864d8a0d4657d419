import type { Chunk, Output } from '../protocol/turn.ts';
import { throwIfFailed } from './turn-error.ts';

/** A turn as it comes, without conveniences. */
interface Streamed {
  readonly stream: AsyncIterable<Chunk>;
  readonly output: Promise<Output>;
}

/** The text of the agent itself, without that of its sub-agents. Rejects with a TurnError at the end of a failed turn. */
export async function* textStreamOf(turn: Streamed): AsyncGenerator<string, void> {
  for await (const { agent, modelChunk } of turn.stream) {
    if (agent !== undefined || modelChunk === undefined) continue;
    for (const part of modelChunk.content) if ('text' in part && part.text !== '') yield part.text;
  }
  throwIfFailed(await turn.output);
}
