import type { Json } from '../core/json/json.ts';
import { textOf } from '../protocol/messages/text.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import { LiveTurn } from './live-turn.ts';
import { MessageViews } from './message-view.ts';
import type { SubAgentView } from './view.ts';

const none: readonly SubAgentView[] = [];
const atWork = { running: true, interrupts: [] };

interface SubAgentChunk {
  readonly agentRef?: string | undefined;
  readonly modelChunk?: ModelChunk | undefined;
  readonly status?: unknown;
}

/** The sub-agents of a running turn, as far as their chunks tell. */
export class SubAgents {
  /** A new list whenever one of them has said something; the views of the others stay the objects they were. */
  views = none;
  readonly #turns: { readonly live: LiveTurn; readonly messages: MessageViews }[] = [];

  fold(agent: string, { agentRef, modelChunk, status }: SubAgentChunk): void {
    const { views } = this;
    const known = views.findIndex((view) => view.agent === agent && view.ref === agentRef);
    const at = known < 0 ? views.length : known;
    this.#turns[at] ??= { live: new LiveTurn(), messages: new MessageViews() };
    const { live, messages } = this.#turns[at];
    if (modelChunk) live.add(modelChunk);
    this.views = views.toSpliced(at, 1, {
      agent,
      ref: agentRef,
      messages: messages.of(live.messages, atWork),
      text: textOf(live.answer),
      // It came over the wire, or could.
      status: (status as Json | undefined) ?? views[at]?.status,
    });
  }
}
