import { isDeepStrictEqual } from 'node:util';
import type { Message } from '../../src/protocol/message.ts';
import type { Output } from '../../src/protocol/turn.ts';
import type { RunRef, Store } from '../../src/store/contract/store.ts';
import type { Effect, Outside } from './desk.ts';
import { type Ask, faultsIn, notesIn, tagsIn } from './script.ts';

/** A violated guarantee. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** An answer that a client received. */
export interface Ack {
  readonly requestId: string;
  /** The message of the turn; `undefined` for answers to approvals. */
  readonly ask: Ask | undefined;
  readonly sessionId: string;
  readonly output: Output;
  /** The steps at which it was sent and answered. */
  readonly sent: number;
  readonly acked: number;
  /** The snapshot whose approval it answers. */
  readonly answers?: string | undefined;
}

const scope = { agent: 'desk' };
const kept: ReadonlySet<string | undefined> = new Set(['stop', 'interrupted', 'aborted']);

/** Whether an output names a snapshot that the session continues from. */
function isKept({ snapshotId, finishReason }: Output): boolean {
  return snapshotId !== undefined && kept.has(finishReason);
}

/**
 * The independent model: what clients and the outside world saw, and what must follow from that. It knows the guarantees and the public
 * API, and nothing about the implementation.
 */
export class Oracle {
  readonly acks: Ack[] = [];
  /** Runs that were reported as accepted. */
  readonly accepted = new Map<string, { readonly ask: Ask; readonly sessionId: string }>();
  /** Messages whose turn a client has stopped. */
  readonly stopped = new Set<string>();
  /** Messages that a run has confirmed as steered. */
  readonly steered: { readonly tag: string; readonly runId: string }[] = [];
  /** Model calls in writes that were carried out and reported as failed. */
  repeatableCalls = 0;
  /** Sessions in which nothing moves the head but turns. */
  readonly linear: ReadonlySet<string>;
  readonly outside: Outside;
  readonly #snapshotOf = new Map<string, string>();
  readonly #attempts = new Map<string, number>();
  /** Effects that may not happen again, because their results are stored. */
  readonly #settled = new Set<string>();
  #violation: Violation | undefined;

  constructor(linear: ReadonlySet<string>) {
    this.linear = linear;
    this.outside = {
      effects: [],
      modelCalls: 0,
      onEffect: (effect) => this.#checkEffect(effect),
    };
  }

  /** Throws the first violation. */
  check(): void {
    if (this.#violation !== undefined) throw this.#violation;
  }

  violated(message: string): void {
    this.#violation ??= new Violation(message);
  }

  acknowledge(ack: Ack): void {
    this.acks.push(ack);
    const { requestId, output } = ack;
    if (output.snapshotId === undefined) return;
    const before = this.#snapshotOf.get(requestId) ?? output.snapshotId;
    this.#snapshotOf.set(requestId, before);
    if (before !== output.snapshotId) {
      this.violated(`request ${requestId} got the snapshots ${before} and ${output.snapshotId}`);
    }
  }

  #checkEffect({ tool, tag, key, process }: Effect): void {
    // A process that has stalled finds out only with its next write that another one has its run.
    if (this.#settled.has(`${tool} ${key}`) && !process.hasStalled) {
      this.violated(`${process.name} ran ${tool} of #${tag} again, although its result was stored`);
    }
  }

  /** Observes the calls of all processes as the store carries them out. */
  observe(store: Store): Store {
    const { runs, events } = store;
    if (runs === undefined || events === undefined) return store;
    const current = (ref: RunRef, call: string): void => {
      const attempt = this.#attempts.get(ref.runId) ?? 1;
      if (ref.attempt < attempt) {
        this.violated(
          `attempt ${ref.attempt} of run ${ref.runId} wrote by ${call}, although attempt ${attempt} had begun`,
        );
      }
    };
    const settle = (isStored: (effect: Effect) => boolean): void => {
      for (const effect of this.outside.effects) {
        if (isStored(effect)) this.#settled.add(`${effect.tool} ${effect.key}`);
      }
    };
    const settleAnswers = (messages: readonly Message[]): void => {
      for (const { role, content } of messages) {
        if (role !== 'tool') continue;
        for (const part of content) {
          if (!('toolResponse' in part)) continue;
          const { name, output } = part.toolResponse;
          settle(({ tool, tag }) => tool === name && output === `${tool} ${tag}`);
        }
      }
    };
    return {
      ...store,
      runs: {
        ...runs,
        takeOver: async (request) => {
          const taken = await runs.takeOver(request);
          for (const { run, claim } of taken) this.#attempts.set(run.runId, claim.attempt);
          return taken;
        },
        heartbeat: async (ref) => {
          const signal = await runs.heartbeat(ref);
          if (signal !== 'lost') current(ref, 'heartbeat');
          return signal;
        },
        checkpoint: async (ref, write) => {
          const base = await runs.checkpoint(ref, write);
          current(ref, 'checkpoint');
          settleAnswers(write.state.history.messages);
          return base;
        },
        commit: async (ref, write) => {
          const committed = await runs.commit(ref, write);
          current(ref, 'commit');
          settleAnswers(write.state?.history.messages ?? []);
          return committed;
        },
        release: async (ref, ...rest) => {
          await runs.release(ref, ...rest);
          current(ref, 'release');
        },
        saveStep: async (ref, key, value) => {
          await runs.saveStep(ref, key, value);
          current(ref, 'saveStep');
          settle((effect) => value === `${effect.tool} ${effect.tag}`);
        },
      },
      events: {
        ...events,
        append: async (ref, list) => {
          await events.append(ref, list);
          current(ref, 'append');
        },
      },
    };
  }

  /** Checks everything that must hold once all faults are over and all runs have ended. */
  async checkEnd(store: Store): Promise<void> {
    this.check();
    const runs = (await store.runs?.listRuns()) ?? [];
    // The next turn of the session replaces a run whose caller has died.
    const open = runs.filter(({ mode, expired }) => mode !== 'attached' || !expired);
    if (open.length > 0) {
      throw new Violation(
        `runs never ended: ${open.map(({ runId, mode }) => `${runId} ${mode}`).join(', ')}`,
      );
    }
    const faults = await store.maintenance?.verify();
    if (faults?.length) throw new Violation(`verify found ${JSON.stringify(faults[0])}`);
    const sessions = new Set(this.acks.map(({ sessionId }) => sessionId));
    for (const { sessionId } of this.accepted.values()) sessions.add(sessionId);
    const added = new Map<string, string>();
    for (const sessionId of sessions) await this.#checkSession(store, sessionId, added);
    for (const ack of this.acks) await this.#checkAck(store, ack, added);
    await this.#checkAccepted(store);
    await this.#checkSteered(store);
    this.#checkAnswers();
    this.#checkKeys();
    await this.#checkSpend(store);
  }

  async #checkSession(store: Store, sessionId: string, added: Map<string, string>): Promise<void> {
    const page = await store.timeline?.listSnapshots(scope, sessionId, {
      includeOrphaned: true,
      limit: 500,
    });
    for (const { snapshotId, status } of page?.items ?? []) {
      if (status !== 'succeeded') continue;
      const snapshot = await store.getSnapshot(scope, { snapshotId });
      const messages = snapshot?.state?.messages ?? [];
      const [fault] = faultsIn(messages, (tag) => this.stopped.has(tag));
      if (fault !== undefined) throw new Violation(`snapshot ${snapshotId}: ${fault}`);
      const notes = (snapshot?.state?.custom as { notes?: string[] } | undefined)?.notes ?? [];
      if (!isDeepStrictEqual(notes, notesIn(messages))) {
        throw new Violation(
          `snapshot ${snapshotId} has the notes ${notes} instead of ${notesIn(messages)}`,
        );
      }
      const parent =
        snapshot?.parentId && (await store.getSnapshot(scope, { snapshotId: snapshot.parentId }));
      const tags = tagsIn(messages);
      const before = parent ? tagsIn(parent.state?.messages ?? []) : [];
      if (!isDeepStrictEqual(tags.slice(0, before.length), before)) {
        throw new Violation(
          `snapshot ${snapshotId} does not continue its parent: ${tags} after ${before}`,
        );
      }
      for (const tag of tags.slice(before.length)) {
        const other = added.get(tag);
        if (other !== undefined && other !== snapshotId)
          throw new Violation(`#${tag} ran twice: ${other} and ${snapshotId}`);
        added.set(tag, snapshotId);
      }
    }
    if (this.linear.has(sessionId)) await this.#checkOrder(store, sessionId);
  }

  /** In a session without branches: every acknowledged turn is there, in the order of acknowledgements. */
  async #checkOrder(store: Store, sessionId: string): Promise<void> {
    const head = await store.getSnapshot(scope, { sessionId });
    const tags = tagsIn(head?.state?.messages ?? []);
    const turns = this.acks.filter(
      (ack) => ack.sessionId === sessionId && ack.ask !== undefined && isKept(ack.output),
    );
    for (const { ask, acked } of turns) {
      const at = tags.indexOf(ask?.tag ?? '');
      if (at < 0)
        throw new Violation(`#${ask?.tag} was acknowledged and is not in ${sessionId}: ${tags}`);
      for (const later of turns) {
        if (later.sent > acked && tags.indexOf(later.ask?.tag ?? '') < at) {
          throw new Violation(
            `#${later.ask?.tag} was sent after #${ask?.tag} was acknowledged, but comes before it: ${tags}`,
          );
        }
      }
    }
  }

  async #checkAck(
    store: Store,
    { ask, output, requestId }: Ack,
    added: ReadonlyMap<string, string>,
  ): Promise<void> {
    const { snapshotId, finishReason } = output;
    if (snapshotId === undefined || !isKept(output)) {
      if (
        ask !== undefined &&
        finishReason === 'failed' &&
        ask.command !== 'fail' &&
        added.has(ask.tag)
      ) {
        throw new Violation(
          `#${ask.tag} was reported as failed and is in ${added.get(ask.tag)}: ${output.error?.message}`,
        );
      }
      return;
    }
    const snapshot = await store.getSnapshot(scope, { snapshotId });
    if (snapshot === undefined)
      throw new Violation(`the snapshot ${snapshotId} of request ${requestId} is missing`);
    if (ask !== undefined && snapshot.status === 'succeeded' && added.get(ask.tag) !== snapshotId) {
      throw new Violation(
        `#${ask.tag} was acknowledged in ${snapshotId} and is in ${added.get(ask.tag)}`,
      );
    }
  }

  async #checkAccepted(store: Store): Promise<void> {
    for (const [runId, { ask }] of this.accepted) {
      const snapshot = await store.getSnapshot(scope, { snapshotId: runId });
      const { status } = snapshot ?? {};
      const isExpected =
        status === 'succeeded' ||
        (status === 'failed' && (ask.command === 'fail' || snapshot?.error !== undefined)) ||
        (status === 'aborted' && this.stopped.has(ask.tag));
      if (!isExpected)
        throw new Violation(`run ${runId} of #${ask.tag} was accepted and is ${status}`);
    }
  }

  /** A message that a run has taken is in its snapshot. */
  async #checkSteered(store: Store): Promise<void> {
    for (const { tag, runId } of this.steered) {
      const snapshot = await store.getSnapshot(scope, { snapshotId: runId });
      if (snapshot?.status !== 'succeeded') continue;
      if (!tagsIn(snapshot.state?.messages ?? []).includes(tag)) {
        throw new Violation(`#${tag} was added to run ${runId} and is not in its snapshot`);
      }
    }
  }

  /** Without branches, an approval is answered once. */
  #checkAnswers(): void {
    const answers = new Map<string, string>();
    for (const { sessionId, answers: asked, output } of this.acks) {
      if (asked === undefined || !this.linear.has(sessionId) || !isKept(output)) continue;
      const before = answers.get(asked) ?? output.snapshotId ?? '';
      answers.set(asked, before);
      if (before !== output.snapshotId)
        throw new Violation(
          `the approval in ${asked} was answered by ${before} and ${output.snapshotId}`,
        );
    }
  }

  /** Every attempt at a recoverable run passes the same key to the outside. */
  #checkKeys(): void {
    const recoverable = new Set([...this.accepted.values()].map(({ ask }) => ask.tag));
    const keys = new Map<string, string>();
    for (const { tool, tag, key } of this.outside.effects) {
      if (!recoverable.has(tag) || tool === 'book') continue;
      const name = `${tool} #${tag}`;
      const before = keys.get(name) ?? key;
      keys.set(name, before);
      if (before !== key) throw new Violation(`${name} was called under two idempotency keys`);
    }
  }

  async #checkSpend(store: Store): Promise<void> {
    const total = await store.spend?.total({});
    const recorded = total?.cost?.USD ?? 0;
    // A write whose answer was lost is repeated, with what was spent.
    if (recorded > this.outside.modelCalls + this.repeatableCalls) {
      throw new Violation(
        `${recorded} model calls were charged, and ${this.outside.modelCalls} were made`,
      );
    }
  }
}
