import { raceSignal } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import { uuidv7 } from '../../core/id.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { RequestId } from './errors.ts';
import type { RpcReply } from './json-rpc.ts';

/** Whose dialog: a caller, and the session that it began with `initialize`. */
export interface Peer {
  readonly principal: string | undefined;
  readonly session: string | undefined;
}

/** What clients of the 2025 revisions and this process have open with each other. */
export interface Dialogs {
  /** Asks a client; the request with this id goes out on the stream of the call that asks. */
  ask(peer: Peer, signal: AbortSignal): { readonly id: string; readonly reply: Promise<RpcReply> };
  /** Passes on the answer of a client; one to a question that this client was not asked is dropped. */
  answer(peer: Peer, reply: RpcReply): void;
  /** Lets `notifications/cancelled` end a call; the returned function forgets it. */
  enter(peer: Peer, id: RequestId, cancel: () => void): () => void;
  cancel(peer: Peer, id: unknown): void;
}

export function createDialogs(clock: Clock): Dialogs {
  const questions = new Map<string, (reply: RpcReply) => void>();
  const calls = new Map<string, () => void>();
  const keyOf = ({ principal, session }: Peer, id: unknown): string =>
    JSON.stringify([principal ?? null, session ?? null, id]);
  return {
    ask(peer, signal) {
      const id = uuidv7(clock.now());
      const key = keyOf(peer, id);
      const { promise, resolve } = Promise.withResolvers<RpcReply>();
      questions.set(key, resolve);
      const reply = raceSignal(promise, signal).finally(() => questions.delete(key));
      reply.catch(() => {});
      return { id, reply };
    },
    answer(peer, reply) {
      questions.get(keyOf(peer, reply.id))?.(reply);
    },
    enter(peer, id, cancel) {
      const key = keyOf(peer, id);
      // Ids of several clients without a session may be the same.
      if (peer.session === undefined) return () => {};
      if (calls.has(key)) {
        throw new WaymarkError('INVALID_ARGUMENT', 'A request with this id is still running.');
      }
      calls.set(key, cancel);
      return () => {
        if (calls.get(key) === cancel) calls.delete(key);
      };
    },
    cancel(peer, id) {
      calls.get(keyOf(peer, id))?.();
    },
  };
}
