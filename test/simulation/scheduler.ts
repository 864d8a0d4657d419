import { passElapsed, settle } from './host.ts';
import type { Random } from './random.ts';

/** A process or a client: the scheduler delays all of its work together. */
export interface Actor {
  readonly name: string;
  /** Nothing of it continues before this time. */
  frozenUntil: number;
  /** Nothing of it ever continues. */
  dead: boolean;
  /** Others may have taken it for dead. */
  hasStalled?: boolean;
}

interface Task {
  readonly actor: Actor;
  readonly label: string;
  readonly resume: () => void;
}

interface Timer {
  readonly actor: Actor;
  due: number;
  readonly every: number | undefined;
  readonly fire: () => void;
}

/** An episode that takes more decisions never ends. */
const maxSteps = 400_000;

/** Milliseconds that may pass while tasks are ready. */
const soon = 500;

/**
 * Decides by a seed which of the waiting tasks continues next. Between two decisions everything runs that can run, so the same seed
 * gives the same order. Time moves only by a decision, or when every task waits for it.
 */
export class Scheduler {
  readonly random: Random;
  now = Date.parse('2026-01-01T00:00:00Z');
  /** Decisions so far. */
  steps = 0;
  /** Called before each decision. */
  onStep: (step: number) => void = () => {};
  /** The latest decisions, for reports of failures. */
  readonly trace: string[] = [];
  /** A hash of all decisions. */
  digest = 0;
  #tasks: Task[] = [];
  readonly #timers = new Set<Timer>();

  constructor(random: Random) {
    this.random = random;
  }

  /** Waits until the seed chooses this task. The promise of a dead actor never settles. */
  pause(actor: Actor, label: string): Promise<void> {
    return new Promise((resume) => {
      if (!actor.dead) this.#tasks.push({ actor, label, resume });
    });
  }

  /** Calls back after some time, once or repeatedly. Returns a function that cancels it. */
  timer(actor: Actor, ms: number, fire: () => void, isRepeated = false): () => void {
    const delay = Math.max(Math.ceil(ms), 1);
    const timer = { actor, due: this.now + delay, every: isRepeated ? delay : undefined, fire };
    if (!actor.dead) this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  sleep(actor: Actor, ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.timer(actor, ms, resolve);
    });
  }

  /** Drops everything that waits for this actor. */
  kill(actor: Actor): void {
    actor.dead = true;
    this.#tasks = this.#tasks.filter((task) => task.actor !== actor);
    for (const timer of this.#timers) if (timer.actor === actor) this.#timers.delete(timer);
  }

  /** Runs work to its end. */
  async run<Value>(work: () => Promise<Value>): Promise<Value> {
    let isDone = false;
    const result = work().finally(() => {
      isDone = true;
    });
    result.catch(() => {});
    for (;;) {
      await settle();
      if (isDone) return await result;
      if (++this.steps > maxSteps) throw new Error(`No end after ${maxSteps} steps.`);
      this.onStep(this.steps);
      this.#decide();
    }
  }

  #decide(): void {
    const timer = this.#nextTimer();
    const at = this.#readyTask();
    const wait = timer === undefined ? Number.POSITIVE_INFINITY : timer.due - this.now;
    if (at !== undefined && !(wait < soon && this.random.chance(0.05))) {
      const [task] = this.#tasks.splice(at, 1) as [Task];
      this.#note(task.actor, task.label);
      passElapsed(this.random.chance(0.02) ? 11 : 0.05);
      task.resume();
      return;
    }
    if (timer === undefined) throw new Error('Deadlock: every task waits for another one.');
    this.now = Math.max(this.now, timer.due);
    if (timer.every === undefined) this.#timers.delete(timer);
    else timer.due = this.now + timer.every;
    this.#note(timer.actor, 'timer');
    timer.fire();
  }

  #note(actor: Actor, label: string): void {
    for (const text of [actor.name, label]) {
      for (let at = 0; at < text.length; at++) {
        this.digest = (Math.imul(this.digest, 31) + text.charCodeAt(at)) >>> 0;
      }
    }
    if (this.trace.push(`${this.steps} ${actor.name} ${label}`) > 2_000)
      this.trace.splice(0, 1_000);
  }

  #readyTask(): number | undefined {
    const { length } = this.#tasks;
    if (length === 0) return undefined;
    const start = this.random.below(length);
    for (let n = 0; n < length; n++) {
      const at = (start + n) % length;
      if ((this.#tasks[at] as Task).actor.frozenUntil <= this.now) return at;
    }
    return undefined;
  }

  // A frozen actor's timers are late, not lost. Its tasks continue with the first timer after its thaw.
  #nextTimer(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      const due = Math.max(timer.due, timer.actor.frozenUntil);
      if (due > timer.due) timer.due = due;
      if (next === undefined || due < next.due) next = timer;
    }
    return next;
  }
}
