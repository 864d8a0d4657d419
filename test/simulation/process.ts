import type { Agent } from '../../src/agent/contract/agent.ts';
import { type App, waymark } from '../../src/app.ts';
import { createIds } from '../../src/core/id.ts';
import type { Clock } from '../../src/core/time.ts';
import { localEngine } from '../../src/engine/local-engine.ts';
import { type FetchHandler, handler } from '../../src/server/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { clockOf } from './clock.ts';
import { type DeskOptions, defineDesk } from './desk.ts';
import type { Link, LinkFaults } from './link.ts';
import type { Actor, Scheduler } from './scheduler.ts';

/** Thrown to the clients of a process that died. */
export class ProcessDied extends Error {
  override readonly name = 'ProcessDied';
}

/** Settings of a process. */
export interface ProcessOptions {
  readonly name: string;
  readonly scheduler: Scheduler;
  /** Milliseconds that its clock is ahead. */
  readonly skew: number;
  readonly faults: LinkFaults;
  readonly claimTtl: number;
  readonly attempts: number;
  readonly desk: DeskOptions;
  /** The store as this process reaches it. */
  readonly connect: (link: Link, clock: Clock) => Store;
  readonly onError: (error: unknown) => void;
  readonly onLostAnswer: (calls: number) => void;
}

/** A process with an app, which can die or stall at any scheduling point. */
export class SimulatedProcess implements Actor {
  readonly name: string;
  readonly clock: Clock;
  readonly app: App;
  readonly desk: Agent;
  frozenUntil = 0;
  dead = false;
  /** It may have lost its runs without knowing it. */
  hasStalled = false;
  #serve: FetchHandler | undefined;
  readonly #scheduler: Scheduler;
  readonly #link: Link;
  readonly #death = Promise.withResolvers<never>();

  constructor(options: ProcessOptions) {
    const { scheduler, skew } = options;
    this.name = options.name;
    this.#scheduler = scheduler;
    const { faults, onLostAnswer } = options;
    this.#link = { scheduler, actor: this, faults, outgoing: new Set(), onLostAnswer };
    this.#death.promise.catch(() => {});
    this.clock = clockOf(this, scheduler, skew);
    this.app = waymark({
      store: options.connect(this.#link, this.clock),
      clock: this.clock,
      newId: createIds(this.clock),
      claimTtl: options.claimTtl,
      engine: localEngine({ attempts: options.attempts }),
      onError: options.onError,
    });
    this.desk = defineDesk(this.app, { scheduler, actor: this }, options.desk);
  }

  /** The HTTP server of the process. */
  get serve(): FetchHandler {
    this.#serve ??= handler(this.app, { clock: this.clock });
    return this.#serve;
  }

  /** Calls the process as a client of another process does: the call fails when this process dies. */
  async call<Value>(work: (process: this) => Promise<Value>): Promise<Value> {
    if (this.dead) throw new ProcessDied('The process had died.');
    return await Promise.race([work(this), this.#death.promise]);
  }

  /** Dies at once. The store still receives some of the calls that were on their way. */
  kill(): void {
    if (this.dead) return;
    const { random } = this.#scheduler;
    this.#scheduler.kill(this);
    for (const work of this.#link.outgoing) if (random.chance(0.5)) work().catch(() => {});
    this.#death.reject(new ProcessDied('The process died.'));
  }

  /** Does nothing for a while, as if the machine were suspended. */
  stall(ms: number): void {
    this.hasStalled = true;
    this.frozenUntil = Math.max(this.frozenUntil, this.#scheduler.now + ms);
    // Time passes while all tasks are frozen.
    this.#scheduler.timer(world, ms, () => {});
  }
}

const world: Actor = { name: 'world', frozenUntil: 0, dead: false };
