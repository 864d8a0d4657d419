import type { Json } from '../core/json.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import { LiveTurn, textOf } from './live-turn.ts';
import type { SubAgentView } from './view.ts';

/** The sub-agents of a running turn, as far as their chunks tell. */
export class SubAgents {
  readonly #turns = new Map<string, LiveTurn>();
  #views: readonly SubAgentView[] = none;

  /** A new list whenever one of them has said something; the views of the others stay the objects they were. */
  get views(): readonly SubAgentView[] {
    return this.#views;
  }

  fold(
    agent: string,
    { modelChunk, status }: { readonly modelChunk?: ModelChunk; readonly status?: Json },
  ): void {
    const turn = this.#turns.get(agent) ?? new LiveTurn();
    this.#turns.set(agent, turn);
    if (modelChunk) turn.add(modelChunk);
    const before = this.#views.find((view) => view.agent === agent);
    const { messages, answer } = turn;
    const view = { agent, messages, text: textOf(answer), status: status ?? before?.status };
    this.#views = before
      ? this.#views.map((each) => (each === before ? view : each))
      : [...this.#views, view];
  }
}

const none: readonly SubAgentView[] = [];
