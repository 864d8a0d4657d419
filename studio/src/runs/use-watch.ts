import { useEffect, useState } from 'react';
import type { Chunk, Reset, RunInfo } from '../../../src/client/index.ts';
import { textOf } from '../../../src/protocol/messages.ts';
import { agentOf } from '../lib/server.ts';

/** The messages of a run so far, while it is watched. */
export interface Watched {
  readonly text: string;
  readonly resets: number;
  readonly fault?: string;
}

const maxText = 20_000;

/** Follows a run from its first event; nothing while `run` is absent. */
export function useWatch(run: Pick<RunInfo, 'agent' | 'snapshotId'> | undefined): Watched {
  const [watched, setWatched] = useState<Watched>({ text: '', resets: 0 });
  const { agent, snapshotId } = run ?? {};
  useEffect(() => {
    if (agent === undefined || snapshotId === undefined) return;
    const leaving = new AbortController();
    setWatched({ text: '', resets: 0 });
    const said = new Said();
    const follow = async (): Promise<void> => {
      for await (const event of agentOf(agent).watch(snapshotId, { signal: leaving.signal })) {
        if (leaving.signal.aborted) return;
        if (event.type === 'end') continue;
        if (event.type === 'reset') said.reset(event);
        else said.add(event.chunk);
        setWatched({ text: said.text, resets: said.resets });
      }
    };
    follow().catch((error: unknown) => {
      if (leaving.signal.aborted) return;
      const fault = error instanceof Error ? error.message : String(error);
      setWatched((before) => ({ ...before, fault }));
    });
    return () => leaving.abort();
  }, [agent, snapshotId]);
  return watched;
}

/** The text of a run, in pieces that know their turn and message: a takeover takes some of them back. */
class Said {
  resets = 0;
  #pieces: { readonly turn: number; readonly index: number; readonly text: string }[] = [];
  #turn = 0;
  #index = 0;

  get text(): string {
    return this.#pieces
      .map(({ text }) => text)
      .join('')
      .slice(-maxText);
  }

  add({ agent, turnStart, modelChunk }: Chunk): void {
    if (agent === undefined) {
      this.#turn = turnStart?.turnIndex ?? this.#turn;
      this.#index = modelChunk?.index ?? this.#index;
    }
    const last = this.#pieces.at(-1);
    const isSame = last?.turn === this.#turn && last.index === this.#index;
    const text = (isSame ? last.text : '') + textOf(modelChunk);
    if (isSame) this.#pieces.pop();
    this.#pieces.push({ turn: this.#turn, index: this.#index, text });
  }

  reset({ turnIndex = this.#turn, index: first = 0 }: Reset): void {
    this.resets++;
    this.#pieces = this.#pieces.filter(
      ({ turn, index }) => turn < turnIndex || (turn === turnIndex && index < first),
    );
  }
}
