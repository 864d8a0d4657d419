import type { Agent } from '../../src/agent/contract/agent.ts';
import { createClient } from '../../src/client/client.ts';
import { isWaymarkError } from '../../src/core/error.ts';
import type { Output } from '../../src/protocol/turn.ts';
import { clockOf } from './clock.ts';
import { type Network, simulatedFetch } from './network.ts';
import type { Ack, Oracle } from './oracle.ts';
import { ProcessDied, type SimulatedProcess } from './process.ts';
import type { Actor, Scheduler } from './scheduler.ts';
import { type Ask, askText, type Command } from './script.ts';

/** An operation of a client. */
export interface Op {
  readonly kind:
    | 'turn'
    | 'remote'
    | 'background'
    | 'stop'
    | 'steer'
    | 'answer'
    | 'again'
    | 'branch'
    | 'restore'
    | 'fork'
    | 'pause';
  readonly command: Command;
  /** The session, and a number that chooses among what there is. */
  readonly session: string;
  readonly choice: number;
}

/** Everything that a client needs to know about its surroundings. */
export interface ClientPlace {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly oracle: Oracle;
  readonly network: Network;
  /** Whether the session may get branches. */
  readonly isTree: (sessionId: string) => boolean;
}

/** Statuses after which a client sends its request again, under the same request id. */
const transient = new Set(['UNAVAILABLE', 'UNKNOWN', 'ABORTED', 'DEADLINE_EXCEEDED', 'CANCELLED']);

const maxTries = 60;

/** A client that carries out its operations one after the other, and reports to the oracle what it was told. */
export class SimulatedClient implements Actor {
  readonly name: string;
  frozenUntil = 0;
  dead = false;
  readonly #place: ClientPlace;
  readonly #remote: Agent;
  #count = 0;
  #last: (() => Promise<void>) | undefined;

  constructor(place: ClientPlace) {
    this.#place = place;
    this.name = place.name;
    const fetch = simulatedFetch(place.network, this);
    const clock = clockOf(this, place.scheduler);
    const client = createClient({ url: 'http://localhost', fetch, clock });
    this.#remote = client.agent('desk') as unknown as Agent;
  }

  async run(ops: readonly Op[]): Promise<void> {
    for (const op of ops) {
      await this.#place.scheduler.pause(this, op.kind);
      await this.#carryOut(op);
    }
  }

  async #carryOut(op: Op): Promise<void> {
    const { scheduler, isTree } = this.#place;
    switch (op.kind) {
      case 'turn':
        return await this.#turn(op, {});
      case 'remote':
        return await this.#turn(op, { isRemote: true });
      case 'background':
        return await this.#background(op);
      case 'stop':
        return await this.#stop(op);
      case 'steer':
        return await this.#steer(op);
      case 'answer':
        return await this.#answer(op);
      case 'again':
        return await this.#last?.();
      case 'branch':
      case 'restore':
      case 'fork':
        if (isTree(op.session)) await this.#move(op);
        return;
      case 'pause':
        return await scheduler.sleep(this, 1 + ((op.choice * 977) % 1_800_000));
    }
  }

  #ask(command: Command): Ask {
    return { tag: `${this.name}.${++this.#count}`, command };
  }

  /** Sends a request until it has an outcome. Returns it, or `undefined` when the client gives up. */
  async #request<Value>(
    work: () => Promise<Value>,
    tolerated: readonly string[] = [],
  ): Promise<Value | undefined> {
    const { scheduler, oracle } = this.#place;
    for (let tries = 1; tries <= maxTries; tries++) {
      try {
        return await work();
      } catch (error) {
        const status = isWaymarkError(error) ? error.status : 'DIED';
        if (tolerated.includes(status)) return undefined;
        if (!(error instanceof ProcessDied) && !transient.has(status)) {
          oracle.violated(`${this.name} got an unexpected error: ${String(error)}`);
          throw error;
        }
      }
      await scheduler.sleep(this, Math.min(200 * 2 ** tries, 20_000));
    }
    return undefined;
  }

  /** A process to call; waits while there is none. */
  async #process(): Promise<SimulatedProcess> {
    const { scheduler, network } = this.#place;
    for (;;) {
      const process = network.pick();
      if (process !== undefined) return process;
      await scheduler.sleep(this, 5_000);
    }
  }

  async #turn(
    op: Op,
    { isRemote = false, from }: { isRemote?: boolean; from?: string },
  ): Promise<void> {
    const { oracle, scheduler } = this.#place;
    const ask = this.#ask(op.command);
    const requestId = `r-${ask.tag}`;
    const place = from === undefined ? { sessionId: op.session } : { snapshotId: from };
    const sent = scheduler.steps;
    const send = async (): Promise<void> => {
      const output = await this.#request(() =>
        this.#run(
          (agent) => agent.runText(askText(ask), { ...place, requestId, throwOnError: false }),
          isRemote,
        ),
      );
      if (output === undefined) return;
      const { sessionId } = output;
      const ack = { requestId, ask, sessionId, output, sent, acked: scheduler.steps };
      oracle.acknowledge(ack);
      // Most people answer what they are asked, and some press the button twice.
      const answers = output.finishReason === 'interrupted' ? op.choice % 3 : 0;
      await Promise.all(Array.from({ length: answers }, () => this.#approve(ack)));
    };
    this.#last = send;
    await send();
  }

  /** Runs a turn; a transient failure of the turn is thrown, so that it is sent again. */
  async #run(work: (agent: Agent) => Promise<Output>, isRemote = false): Promise<Output> {
    const output = isRemote
      ? await work(this.#remote)
      : await (await this.#process()).call(({ desk }) => work(desk));
    const { error } = output;
    if (output.finishReason === 'failed' && error !== undefined && transient.has(error.status)) {
      throw Object.assign(new ProcessDied(`The turn failed: ${error.status} ${error.message}`), {});
    }
    return output;
  }

  async #background(op: Op): Promise<void> {
    const runId = await this.#start(op, this.#ask(op.command));
    if (runId === undefined) return;
    if (op.choice % 3 === 0) await this.#watch(runId);
    else
      await this.#request(async () => (await this.#process()).call(({ desk }) => desk.wait(runId)));
  }

  async #start(op: Op, ask: Ask): Promise<string | undefined> {
    const { oracle } = this.#place;
    const requestId = `r-${ask.tag}`;
    const start = async (): Promise<string | undefined> => {
      const started = await this.#request(async () =>
        (await this.#process()).call(({ desk }) =>
          desk.start(askText(ask), { sessionId: op.session, requestId }),
        ),
      );
      if (started === undefined) return undefined;
      const before = this.#started.get(requestId) ?? started.id;
      this.#started.set(requestId, before);
      if (before !== started.id)
        oracle.violated(`request ${requestId} got the runs ${before} and ${started.id}`);
      oracle.accepted.set(started.id, { ask, sessionId: op.session });
      return started.id;
    };
    this.#last = async () => void (await start());
    return await start();
  }

  readonly #started = new Map<string, string>();

  /** Follows a run through all faults; its events have neither gaps nor repeats. */
  async #watch(runId: string): Promise<void> {
    const { oracle } = this.#place;
    let after: string | undefined;
    let [attempt, seq] = [1, -1];
    await this.#request(async () => {
      const host = await this.#process();
      const events = host.desk
        .watch(runId, after === undefined ? {} : { after })
        [Symbol.asyncIterator]();
      for (;;) {
        const { done, value } = await host.call(() => events.next());
        if (done) return true;
        if (value.type === 'end') return true;
        const [nextAttempt = 0, nextSeq = 0] = value.id.split('.').map(Number);
        const isNext = nextAttempt > attempt || (nextAttempt === attempt && nextSeq === seq + 1);
        if (value.type === 'chunk' && !isNext) {
          oracle.violated(`a watcher of ${runId} got event ${value.id} after ${attempt}.${seq}`);
        }
        [attempt, seq] = [nextAttempt, nextSeq];
        after = value.id;
      }
    }, ['NOT_FOUND']);
  }

  /** A turn that the client stops: in the foreground by its signal, in the background by its id. */
  async #stop(op: Op): Promise<void> {
    const { oracle, scheduler } = this.#place;
    const ask = this.#ask('hang');
    oracle.stopped.add(ask.tag);
    if (op.choice % 2 === 0) {
      const runId = await this.#start(op, ask);
      if (runId === undefined) return;
      await scheduler.sleep(this, op.choice % 700);
      await this.#request(async () =>
        (await this.#process()).call(({ desk }) => desk.abort(runId)),
      );
      await this.#request(async () => (await this.#process()).call(({ desk }) => desk.wait(runId)));
      return;
    }
    const stop = new AbortController();
    const requestId = `r-${ask.tag}`;
    const sent = scheduler.steps;
    scheduler.timer(this, 1 + (op.choice % 700), () => stop.abort());
    const output = await this.#request(
      () =>
        this.#run((agent) =>
          agent.runText(askText(ask), {
            sessionId: op.session,
            requestId,
            throwOnError: false,
            signal: stop.signal,
          }),
        ),
      ['CANCELLED'],
    );
    if (output === undefined) return;
    oracle.acknowledge({
      requestId,
      ask,
      sessionId: op.session,
      output,
      sent,
      acked: scheduler.steps,
    });
  }

  /** Sends messages to a turn that is running. */
  async #steer(op: Op): Promise<void> {
    const { oracle, scheduler } = this.#place;
    const runId = await this.#start(op, this.#ask('multi'));
    if (runId === undefined) return;
    for (let n = op.choice % 12; n > 0; n--) await scheduler.pause(this, 'wait');
    for (let left = 1 + (op.choice % 3); left > 0; left--) {
      const ask = this.#ask('steer');
      const steered = await this.#request(
        async () =>
          (await this.#process()).call(({ desk }) =>
            desk.steer(runId, askText(ask), { requestId: `r-${ask.tag}` }),
          ),
        ['FAILED_PRECONDITION', 'NOT_FOUND'],
      );
      if (steered !== undefined) oracle.steered.push({ tag: ask.tag, runId });
    }
    await this.#request(async () => (await this.#process()).call(({ desk }) => desk.wait(runId)));
  }

  /** Approves a booking that waits in the session. */
  async #answer(op: Op): Promise<void> {
    const { oracle } = this.#place;
    const waiting = oracle.acks.filter(
      ({ sessionId, output }) => sessionId === op.session && output.finishReason === 'interrupted',
    );
    const asked = waiting[op.choice % Math.max(1, waiting.length)];
    if (asked !== undefined) await this.#approve(asked);
  }

  async #approve(asked: Ack): Promise<void> {
    const { oracle, scheduler } = this.#place;
    const requestId = `a-${this.name}.${++this.#count}`;
    const sent = scheduler.steps;
    const output = await this.#request(
      () =>
        this.#run((agent) =>
          agent.resume(asked.output as never, (request) => request.approve(), {
            requestId,
            throwOnError: false,
          }),
        ),
      ['FAILED_PRECONDITION', 'INVALID_ARGUMENT', 'ALREADY_EXISTS', 'NOT_FOUND'],
    );
    if (output === undefined) return;
    oracle.acknowledge({
      requestId,
      ask: undefined,
      sessionId: asked.sessionId,
      output,
      sent,
      acked: scheduler.steps,
      answers: asked.output.snapshotId,
    });
  }

  /** Continues from, restores or forks an earlier snapshot. */
  async #move(op: Op): Promise<void> {
    const { oracle } = this.#place;
    const known = oracle.acks.filter(
      ({ sessionId, output }) =>
        sessionId === op.session && output.finishReason === 'stop' && output.snapshotId,
    );
    const from = known[op.choice % Math.max(1, known.length)]?.output.snapshotId;
    if (from === undefined) return;
    if (op.kind === 'branch') return await this.#turn(op, { from });
    await this.#request(async () =>
      (await this.#process()).call(async ({ desk }) => {
        if (op.kind === 'fork') await desk.fork(from);
        else await desk.restore(from);
      }),
    );
  }
}
