import type { Json } from '../core/json/json.ts';
import { textOf } from '../protocol/messages/text.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import { LiveTurn } from './live-turn.ts';
import type { SubAgentView } from './view.ts';

const none: readonly SubAgentView[] = [];

interface SubAgentChunk {
  readonly agentRef?: string | undefined;
  readonly modelChunk?: ModelChunk | undefined;
  readonly status?: unknown;
}

/** The sub-agents of a running turn, as far as their chunks tell. */
export class SubAgents {
  /** A new list whenever one of them has said something; the views of the others stay the objects they were. */
  views = none;
  readonly #turns: LiveTurn[] = [];

  fold(agent: string, { agentRef, modelChunk, status }: SubAgentChunk): void {
    const { views } = this;
    const known = views.findIndex((view) => view.agent === agent && view.ref === agentRef);
    const at = known < 0 ? views.length : known;
    this.#turns[at] ??= new LiveTurn();
    const turn = this.#turns[at];
    if (modelChunk) turn.add(modelChunk);
    this.views = views.toSpliced(at, 1, {
      agent,
      ref: agentRef,
      messages: turn.messages,
      text: textOf(turn.answer),
      // It came over the wire, or could.
      status: (status as Json | undefined) ?? views[at]?.status,
    });
  }
}
